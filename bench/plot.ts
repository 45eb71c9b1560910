/** Bars as an SVG that is read on light and on dark ground: a group of them for each side, one bar a load. */
import { short } from './figures.ts'
import type { Bars } from './measurement.ts'

const WIDTH = 760
const NAMES = 150
const BAR = 14
const GAP = 16
const TOP = 56
const COLORS = ['#7aa2c9', '#2f6ea8', '#12395e']
/** Ticks of a logarithmic scale: sides differ by two orders of magnitude. */
const LEAST = 1

export function plot({ title, unit, labels, groups }: Bars): string {
  const most = Math.max(...groups.flatMap(({ values }) => values))
  const long = (value: number) =>
    (Math.max(0, Math.log10(value / LEAST)) / Math.log10(most / LEAST)) * (WIDTH - NAMES - 80)
  const step = labels.length * BAR + GAP
  const height = TOP + groups.length * step
  const legend = labels.map((label, i) => {
    const x = NAMES + i * 130
    return `<rect x="${x}" y="28" width="12" height="12" fill="${COLORS[i]}"/>${text(x + 18, 38, label)}`
  })
  const bars = groups.flatMap(({ name, values }, group) => {
    const y = TOP + group * step
    const middle = y + (labels.length * BAR) / 2 + 4
    return [
      text(NAMES - 10, middle, name, 'end'),
      ...values.map((value, i) => {
        const at = y + i * BAR
        const bar = `<rect x="${NAMES}" y="${at}" width="${long(value).toFixed(1)}" height="${BAR - 2}" fill="${COLORS[i]}"/>`
        return bar + text(NAMES + long(value) + 6, at + BAR - 4, short(value))
      }),
    ]
  })
  const heading = text(NAMES, 16, `${title} (${unit}, logarithmic)`)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${title}" font-family="sans-serif" font-size="12">
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
${[heading, ...legend, ...bars].join('\n')}
</svg>
`
}

function text(x: number, y: number, words: string, anchor = 'start'): string {
  return `<text x="${x.toFixed(0)}" y="${y.toFixed(0)}" text-anchor="${anchor}" fill="#222">${words}</text>`
}
