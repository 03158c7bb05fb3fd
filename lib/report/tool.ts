// The output of a measuring command, the same during the run and from its report.
import type { RankInfo } from '../measure/common-run.js';
import type { CaseResult, Report, ReportHead, VerdictLevel } from '../results/result.js';

/** A line of an answer, for tools with a better one than medians. */
export interface AnswerPart {
  readonly word: string;
  readonly level: VerdictLevel;
  readonly part: string;
  readonly figure: string;
  readonly text: string;
}

/** The whole report in one line with its level and parts, the bad ones first. */
export interface Answer {
  readonly text: string;
  readonly level: VerdictLevel;
  readonly parts: readonly AnswerPart[];
}

/** `room` is the terminal's width; absent: tables are as wide as their cells. */
export interface Tool {
  /** `run.tool` of its reports. */
  readonly name: string;
  /** Whether a report with that name belongs to this tool; absent if the name is unique. */
  readonly owns?: (report: Pick<Report, 'cases'>) => boolean;
  /** Absent if the figures are the answer. */
  readonly answer?: (report: Report) => Answer;
  /** Lines above the first case; `ranks` if known and shown. */
  readonly head: (head: ReportHead, ranks?: readonly RankInfo[], room?: number) => string[];
  /** Groups cases as during the run, for {@link rows}. */
  readonly groups: (cases: readonly CaseResult[]) => readonly (readonly CaseResult[])[];
  readonly rows: (cases: readonly CaseResult[], room?: number) => string[];
  /** Lines below the last case. */
  readonly foot: (report: Report, room?: number) => string[];
}

export function textLines(tool: Tool, report: Report): string[] {
  return [
    ...tool.head(report),
    ...tool.groups(report.cases).flatMap((cases) => tool.rows(cases)),
    ...tool.foot(report),
  ];
}
