/** Types of the demo model: tasks, questions about tables, tool calls and answers. */
import type { Sequence } from './sequence.ts'

/** `save`: the file in outputs/ that the answer should be written to as well. */
export type Task =
  | { readonly kind: 'run_code'; readonly language: 'python' | 'javascript' | 'bash'; readonly code: string }
  | { readonly kind: 'arithmetic'; readonly expression: string; readonly save?: string }
  | { readonly kind: 'sequence'; readonly sequence: Sequence; readonly save?: string }
  | { readonly kind: 'write_file'; readonly path: string; readonly content: string }
  | { readonly kind: 'search'; readonly query: string }
  | { readonly kind: 'list_files' }
  | { readonly kind: 'data'; readonly file: string; readonly question: string; readonly save?: string }
  | { readonly kind: 'missing_file'; readonly name: string; readonly attached: readonly string[] }
  | { readonly kind: 'which_file'; readonly attached: readonly string[] }
  | { readonly kind: 'needs_words'; readonly path: string }
  | { readonly kind: 'unknown' }

/** Format of a file that is read as a table. */
export type Source = { readonly kind: 'csv'; readonly delimiter: string } | { readonly kind: 'access_log' }

export interface Column {
  readonly name: string
  readonly type: 'number' | 'date' | 'text'
  /** All different values of a text column that has few. */
  readonly values: readonly string[]
}

export interface Profile {
  readonly source: Source
  readonly rows: number
  readonly columns: readonly Column[]
}

export type Operation = 'count' | 'mean' | 'sum' | 'min' | 'max' | 'median'

/** `month` is the calendar month over all years. */
export type DatePart = 'year' | 'month' | 'weekday' | 'day' | 'hour'

export interface Group {
  readonly column: string
  /** Set if the column holds dates. */
  readonly part?: DatePart
}

export type Filter =
  | { readonly kind: 'value'; readonly column: string; readonly value: string }
  | { readonly kind: 'year'; readonly column: string; readonly value: number }

export interface TableQuery {
  readonly op: Operation
  /** Undefined for `count`, which counts rows. */
  readonly column?: string
  readonly group?: Group
  readonly filters: readonly Filter[]
  /** Orders the groups by value and keeps the first `limit`. */
  readonly rank?: { readonly direction: 'highest' | 'lowest'; readonly limit: number }
  readonly chart: boolean
  /** Sentences about what was assumed or not understood, for the answer. */
  readonly notes: readonly string[]
}

/** A tool call with the thought before it. */
export interface Call {
  readonly thought: string
  readonly tool: 'code_execution' | 'file_read' | 'file_write' | 'web_search'
  readonly args: Readonly<Record<string, unknown>>
}

/** A value in the answer, with the names by which a JSON answer may ask for it. */
export interface Fact {
  readonly names: readonly string[]
  readonly value: number | string | boolean | readonly Readonly<Record<string, number | string>>[]
}

export interface Table {
  readonly header: readonly string[]
  readonly rows: readonly (readonly (string | number)[])[]
}

export interface Answer {
  readonly thought: string
  readonly text: string
  readonly facts: readonly Fact[]
  /** Set if the answer is about a table: what a chart shows and a CSV file holds. */
  readonly table?: Table
  /** Set if the task could not be done. */
  readonly failed?: boolean
}

/**
 * A running task. It yields a tool call, receives the call's output, and returns the answer. It keeps no other state, so
 * running it again over the same outputs leads to the same call.
 */
export type Work = Generator<Call, Answer, string>
