/** Input and result of a measurement. */

export interface Plan {
  /** The rows that are wanted; a measurement may leave out what none of them needs. */
  readonly rows: readonly string[]
  /** Each figure is the median of so many rounds, all sides in turn in each. */
  readonly rounds: number
  /** Each side works so long in each round. */
  readonly seconds: number
  /** Seconds in all, without peers: whether everything works and every answer is right. Figures mean nothing. */
  readonly short: boolean
  readonly log: (line: string) => void
}

export interface Table {
  readonly title: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/** A target and what was measured. */
export interface Verdict {
  readonly row: string
  readonly what: string
  readonly measured: number
  readonly bound: 'at least' | 'at most'
  readonly target: number
  readonly unit?: string
}

export const hits = ({ measured, bound, target }: Verdict): boolean =>
  bound === 'at least' ? measured >= target : measured <= target

/** Bars of a picture, one group of them for each side. */
export interface Bars {
  readonly title: string
  readonly unit: string
  readonly labels: readonly string[]
  readonly groups: readonly { readonly name: string; readonly values: readonly number[] }[]
}

export interface Result {
  readonly verdicts: readonly Verdict[]
  readonly tables: readonly Table[]
  readonly bars?: readonly Bars[]
  /** Name of a measurement that was not possible, and the reason. */
  readonly missing?: readonly string[]
}

export interface Measurement {
  readonly name: string
  readonly title: string
  /** Names of its rows. */
  readonly rows: readonly string[]
  /** Method of the measurement, for the page. */
  readonly how: string
  measure(plan: Plan): Promise<Result>
}
