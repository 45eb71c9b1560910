/** Prometheus's text format, read: what is served, under which labels, with which values. */

export interface Served {
  readonly name: string
  readonly type: string
  readonly help: string
  /** Label names of its series, `le` left out. Empty while it has no series. */
  readonly labels: readonly string[]
}

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export function readSamples(text: string): Sample[] {
  return [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name, labels = '', value]) => ({
    name: name!,
    labels: Object.fromEntries(
      [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key!, text!]),
    ),
    value: Number(value),
  }))
}

/** The sum over all series of that name whose labels hold these. Undefined where there is none. */
export function sumOf(text: string, name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
  const found = readSamples(text).filter(
    (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0)
}

/** Our own metrics, without those of the process and of Node. */
export function readServed(text: string): Served[] {
  const samples = readSamples(text)
  return [...text.matchAll(/^# HELP (errand_\w+) (.*)\n# TYPE \w+ (\w+)$/gm)].map(([, name, help, type]) => {
    const own = samples.find((sample) => new RegExp(`^${name}(_bucket|_sum|_count)?$`).test(sample.name))
    return {
      name: name!,
      help: help!,
      type: type!,
      labels: Object.keys(own?.labels ?? {}).filter((each) => each !== 'le'),
    }
  })
}
