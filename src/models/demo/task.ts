/**
 * The vocabulary of the demo model: what an instruction can be (Task), what is asked of a table (TableQuery), what a
 * file was found to hold (Profile), and the moves that the model makes.
 */

import type { Sequence } from './sequence.ts'

export interface InputFile {
  /** As the engine listed it: relative to the working directory. */
  readonly name: string
}

export type Task =
  | { readonly kind: 'run_code'; readonly language: 'python' | 'javascript' | 'bash'; readonly code: string }
  | { readonly kind: 'arithmetic'; readonly expression: string; readonly save: string | undefined }
  | { readonly kind: 'sequence'; readonly sequence: Sequence; readonly save: string | undefined }
  | { readonly kind: 'write_file'; readonly path: string; readonly content: string; readonly what: string }
  | { readonly kind: 'search'; readonly query: string }
  | { readonly kind: 'list_files' }
  | { readonly kind: 'show_file'; readonly file: string; readonly lines: number | undefined }
  | { readonly kind: 'data'; readonly file: string; readonly question: Question }
  | { readonly kind: 'missing_file'; readonly name: string; readonly attached: readonly string[] }
  | { readonly kind: 'which_file'; readonly attached: readonly string[] }
  | { readonly kind: 'fresh_sandbox'; readonly name: string }
  | { readonly kind: 'needs_words'; readonly path: string }
  | { readonly kind: 'unknown' }

/** What is asked of a data file. */
export interface Question {
  /** The instruction without file names. */
  readonly text: string
  /** The question of an earlier turn that this one goes on from. */
  readonly before: string | undefined
  /** Where in outputs/ the result should be saved too. */
  readonly save: string | undefined
}

/** How a table is read. */
export type Source =
  | { readonly kind: 'csv'; readonly delimiter: string }
  | { readonly kind: 'json'; readonly path: readonly string[] }
  | { readonly kind: 'jsonl' }
  | { readonly kind: 'access_log' }

export interface Column {
  readonly name: string
  readonly type: 'number' | 'date' | 'text'
  readonly distinct: number
  /** All different values of a text column that has few. */
  readonly values: readonly string[]
}

export interface Profile {
  readonly source: Source
  readonly rows: number
  readonly columns: readonly Column[]
  /** Cell values that stand word for word in the question. */
  readonly mentions: readonly { readonly column: string; readonly value: string }[]
}

export const OPERATIONS = ['count', 'mean', 'sum', 'min', 'max', 'median', 'std', 'unique'] as const
export type Operation = (typeof OPERATIONS)[number]

export interface Measure {
  readonly op: Operation
  /** Undefined for `count`: rows. */
  readonly column: string | undefined
}

/** `month` is the calendar month over all years; `year_month` each month of each year. */
export type DatePart = 'year' | 'month' | 'year_month' | 'weekday' | 'day' | 'hour'

export interface Group {
  readonly column: string
  readonly part: DatePart | undefined
}

export type Filter =
  | {
      readonly kind: 'compare'
      readonly column: string
      readonly op: '>' | '>=' | '<' | '<=' | '==' | '!='
      readonly value: number
    }
  | { readonly kind: 'text'; readonly column: string; readonly values: readonly string[]; readonly not: boolean }
  | {
      readonly kind: 'date'
      readonly column: string
      readonly op: '>' | '>=' | '<' | '<=' | '=='
      readonly value: string
    }
  | { readonly kind: 'contains'; readonly column: string; readonly value: string }
  | { readonly kind: 'part'; readonly column: string; readonly part: 'year' | 'month'; readonly value: number }

export interface TableQuery {
  readonly kind: 'measure' | 'describe' | 'histogram' | 'correlation'
  readonly measures: readonly Measure[]
  readonly groups: readonly Group[]
  readonly filters: readonly Filter[]
  /** Which groups (or, without groups, rows) come first, and how many of them. */
  readonly rank: { readonly direction: 'highest' | 'lowest'; readonly limit: number } | undefined
  readonly chart: boolean
  /** What was taken for granted, in words for the answer. */
  readonly assumed: readonly string[]
}

/** A query, or a sentence about what could not be made out. */
export type Understood =
  | { readonly ok: true; readonly query: TableQuery }
  | { readonly ok: false; readonly problem: string }

/** A tool call with the thought before it. */
export interface Call {
  readonly thought: string
  readonly tool: 'code_execution' | 'file_read' | 'file_write' | 'web_search'
  readonly args: Readonly<Record<string, unknown>>
}

/** A number or word that the answer rests on, by the names a JSON answer may ask for it. */
export interface Fact {
  readonly names: readonly string[]
  readonly value: number | string | boolean | readonly Readonly<Record<string, number | string>>[]
}

export interface Answer {
  readonly thought: string
  readonly text: string
  readonly facts: readonly Fact[]
}

/**
 * A task at work: it yields a tool call, is given that call's output, and returns the answer. A task keeps no state
 * elsewhere, so running it again over the outputs so far comes to the same next move.
 */
export type Work = Generator<Call, Answer, string>
