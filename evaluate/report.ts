/** Results of an evaluation as text, Markdown and SVG. */
import { plot } from '../bench/plot.ts'

/** Result of one run. */
export interface RunResult {
  readonly task: string
  readonly model: string
  readonly setting: string
  readonly solved: boolean
  /** Reason if the task is not solved. */
  readonly problem?: string
  readonly interactionId?: string
  readonly turns: number
  readonly toolCalls: number
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly outputTokens: number
  /** US dollars. Undefined if the model has no price. */
  readonly cost?: number
  readonly seconds: number
}

interface Row {
  readonly cells: readonly string[]
}

const HEAD = ['task', 'model', 'setting', 'solved', 'turns', 'tools', 'input', 'cached', 'output', 'cost', 'time']

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
const whole = (value: number) => Math.round(value).toLocaleString('en-US')

function row(name: readonly [string, string, string], runs: readonly RunResult[]): Row {
  const of = (field: 'turns' | 'toolCalls' | 'inputTokens' | 'cachedTokens' | 'outputTokens' | 'seconds') =>
    mean(runs.map((run) => run[field]))
  const costs = runs.flatMap(({ cost }) => cost ?? [])
  const cells = [
    ...name,
    `${runs.filter(({ solved }) => solved).length}/${runs.length}`,
    of('turns').toFixed(1),
    of('toolCalls').toFixed(1),
    whole(of('inputTokens')),
    `${Math.round((100 * of('cachedTokens')) / Math.max(1, of('inputTokens')))} %`,
    whole(of('outputTokens')),
    costs.length === runs.length ? `$${mean(costs).toFixed(4)}` : '-',
    `${of('seconds').toFixed(0)} s`,
  ]
  return { cells }
}

function groups(results: readonly RunResult[], keyOf: (run: RunResult) => string): RunResult[][] {
  return [...Map.groupBy(results, keyOf).values()]
}

/** A row for each task, model and setting, then one for each model and setting over all tasks. Numbers are means of runs. */
function rows(results: readonly RunResult[]): Row[] {
  const each = groups(results, ({ task, model, setting }) => JSON.stringify([task, model, setting]))
  const all = groups(results, ({ model, setting }) => JSON.stringify([model, setting]))
  return [
    ...each.map((runs) => row([runs[0]!.task, runs[0]!.model, runs[0]!.setting], runs)),
    ...all.map((runs) => row(['all', runs[0]!.model, runs[0]!.setting], runs)),
  ]
}

export function textTable(results: readonly RunResult[]): string {
  const lines = [HEAD, ...rows(results).map(({ cells }) => cells)]
  const widths = HEAD.map((_, i) => Math.max(...lines.map((cells) => cells[i]!.length)))
  return lines
    .map((cells) => cells.map((cell, i) => (i < 3 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join('  '))
    .join('\n')
}

export function markdownTable(results: readonly RunResult[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const marks = HEAD.map((_, i) => (i < 3 ? '---' : '---:'))
  return [line(HEAD), line(marks), ...rows(results).map(({ cells }) => line(cells))].join('\n')
}

/** Bars of tokens and seconds for each model and setting. */
export function svgPlot(results: readonly RunResult[]): string {
  const sides = groups(results, ({ model, setting }) => JSON.stringify([model, setting]))
  return plot({
    title: 'Means of one run over all tasks',
    unit: 'tokens, seconds',
    labels: ['input tokens', 'output tokens', 'seconds'],
    groups: sides.map((runs) => ({
      name: `${runs[0]!.model} ${runs[0]!.setting}`,
      values: [
        mean(runs.map(({ inputTokens }) => inputTokens)),
        mean(runs.map(({ outputTokens }) => outputTokens)),
        mean(runs.map(({ seconds }) => seconds)),
      ],
    })),
  })
}
