// What a command that measures prints, as one record: the same lines while it runs and from its report afterwards.
import type { RankInfo } from '../measure/common-run.js';
import type { CaseResult, Report, ReportHead, VerdictLevel } from '../results/result.js';

/** A line of what a report says, where its tool has something better than medians. */
export interface AnswerPart {
  readonly word: string;
  readonly level: VerdictLevel;
  readonly part: string;
  readonly figure: string;
  readonly text: string;
}

/** The whole report in one line, what that is worth, and what it is made of: the bad first. */
export interface Answer {
  readonly text: string;
  readonly level: VerdictLevel;
  readonly parts: readonly AnswerPart[];
}

/** `room` is the width that a terminal has for a line; absent: tables are as wide as their cells. */
export interface Tool {
  /** `run.tool` of its reports. */
  readonly name: string;
  /** Whether a report of that name is this tool's; absent where no other has the name. */
  readonly owns?: (report: Pick<Report, 'cases'>) => boolean;
  /** Absent where a report's figures are its answer. */
  readonly answer?: (report: Report) => Answer;
  /** Lines above the first case; `ranks` where they are known and shown. */
  readonly head: (head: ReportHead, ranks?: readonly RankInfo[], room?: number) => string[];
  /** The cases of a report as its run told them: those that {@link rows} takes together. */
  readonly groups: (cases: readonly CaseResult[]) => readonly (readonly CaseResult[])[];
  readonly rows: (cases: readonly CaseResult[], room?: number) => string[];
  /** Lines below the last case. */
  readonly foot: (report: Report, room?: number) => string[];
}

/** The whole report. */
export function textLines(tool: Tool, report: Report): string[] {
  return [
    ...tool.head(report),
    ...tool.groups(report.cases).flatMap((cases) => tool.rows(cases)),
    ...tool.foot(report),
  ];
}
