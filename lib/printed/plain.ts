// Removes prefixes of launchers, log collectors and loggers, and terminal escapes from a line.

/** Longer lines are data rather than figures. */
const mostLetters = 4096;
/** Cluster timestamp, rank, program timestamp, level and logger are five. */
const mostPrefixes = 8;

// Escape sequences, and characters that move the cursor.
const escapes =
  /\u001b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\u0007\u001b]{0,256}(?:\u0007|\u001b\\)?|[@-Z\\^_])/g;
const controls = /[\u0000-\u0008\u000b-\u001f\u007f\ufeff]/g;

const day = String.raw`\d{4}[-/]\d\d[-/]\d\d`;
const clock = String.raw`\d\d:\d\d:\d\d(?:[.,]\d{1,9})?`;
const zone = String.raw`(?:Z|[+-]\d\d:?\d\d)?`;
const month = String.raw`(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s{1,2}\d{1,2}`;
const level = String.raw`(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)`;
const name = String.raw`[\w.@:/-]{1,120}`;

/**
 * Possible prefixes. Each includes the spaces after it except the last one: tables are recognised by cells, not
 * positions.
 */
const prefixes: readonly RegExp[] = [
  // Open MPI's --tag-output and --timestamp-output, PRRTE's, horovodrun's: `[1,0]<stdout>:`, `[prterun-1@1,0]<stderr>:
  // `.
  /^\[[^\]\s]{1,120}\](?:<std\w{2,4}>)?:\s?/,
  /^(?:\[[^\]\s]{1,120}\])?<std\w{2,4}>:\s?/,
  // gradlink's `[0] ` and `[server 1] `, torchrun's `[rank0]: `, kubectl's `[pod/name/main] `. Not `[Epoch 3] `, `[8/9]
  // `.
  /^\[(?!(?:epoch|step|iter|iteration|batch)\b)(?:\d{1,9}(?:,\d{1,9})?(?:@[\w.-]{1,80})?|[A-Z][\w.@:/-]{0,120})(?: \d{1,9})?\](?::|(?=\s)) ?/i,
  // srun -l.
  /^\s{0,8}\d{1,6}: /,
  // Times: ISO, of loggers, of syslog, of date(1); with or without brackets.
  new RegExp(String.raw`^[[(]?${day}[T_ ]${clock}${zone}[\])]?[:,]?\s?`),
  new RegExp(String.raw`^[[(]?\d{2}[-/]\d{2}[-/]\d{2,4} ${clock}[\])]?[:,]?\s?`),
  new RegExp(String.raw`^[[(]?${clock}[\])]?[:,]?\s`),
  new RegExp(String.raw`^(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?${month} ${clock} \d{4}`),
  new RegExp(String.raw`^${month} ${clock} [\w.-]{1,80} (?:[\w./-]{1,80}(?:\[\d{1,9}\])?: )?`),
  // The kernel's, since boot.
  /^\[\s{0,8}\d{1,9}\.\d{6}\] /,
  // Loggers: `INFO:root:`, `I0301 10:11:12.123456 1234 file.py:12] `, `name - INFO - `, `| INFO | name:fn:12 - `, `[INFO] `.
  new RegExp(String.raw`^${level}:[\w.-]{1,80}:\s?`),
  new RegExp(String.raw`^[IWEF]\d{4} ${clock}\s{1,8}\d{1,9} [\w./-]{1,120}:\d{1,6}\] `),
  new RegExp(String.raw`^(?:- )?[\w.]{1,120} - ${level} - `),
  new RegExp(String.raw`^\| ${level}\s{0,8}\| ${name} - `),
  new RegExp(String.raw`^(?:- )?[[(]?${level}[\])]?(?: ?[-|:])?(?:\s|$)(?:\[${name}\] )?`),
  // Container logs as written by the runtime, moreutils' ts, Ray's workers.
  /^(?:stdout|stderr) [FP] /,
  /^\d{10}\.\d{1,9}\s/,
  /^\([\w.-]{1,80} pid=\d{1,9}(?:, ip=[\da-f.:]{1,45})?\) /i,
];

/**
 * `node1: ` of pdsh and clush, `worker-1 | ` of docker compose. Labels look the same, so only tables are read behind
 * it.
 */
const host = /^\s{0,40}[a-z\d][\w.:-]{0,80}\s{0,40}(?:: |\| ?)(?=\s{0,40}(?:[\d#]|SUM |Running ))/i;

/** The line without colours, control characters and known prefixes. */
export function plainLine(text: string): string {
  let line = text.slice(0, mostLetters).replaceAll(escapes, '').replaceAll(controls, '');
  for (let count = 0; count < mostPrefixes; count += 1) {
    const before: string = line;
    for (const prefix of prefixes) line = line.replace(prefix, '');
    if (line === before) break;
  }
  return line;
}

/** A line from {@link plainLine} as a line of a table. */
export function tableLine(line: string): string {
  return line.replace(host, '');
}

export function cellsOf(line: string): string[] {
  const text = line.trim();
  return text === '' ? [] : text.split(/\s+/);
}
