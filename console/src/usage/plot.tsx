/** A chart over days: stacked bars or lines. The same data is in a table for screen readers. */
import { type PointerEvent, useEffect, useId, useRef, useState } from 'react'

export interface Series {
  readonly name: string
  /** A color of the palette: `var(--green)`. */
  readonly color: string
  /** Null if there is no value for the day: the line has a gap there. */
  readonly values: readonly (number | null)[]
}

interface PlotProps {
  readonly title: string
  readonly figure: string
  readonly days: readonly string[]
  readonly series: readonly Series[]
  readonly kind: 'bars' | 'lines'
  readonly format: (value: number) => string
}

const HEIGHT = 148
const FOOT = 18
const HEAD = 8
/** Width of the scale at the right. */
const SIDE = 52
const GRID = [0, 0.5, 1]

export function Plot({ title, figure, days, series, kind, format }: PlotProps) {
  const frame = useRef<HTMLDivElement>(null)
  const width = useWidth(frame)
  const [at, setAt] = useState<number>()
  const id = useId()
  const highest =
    kind === 'bars'
      ? days.map((_, i) => series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0))
      : series.flatMap(({ values }) => values.filter((value) => value !== null))
  const top = niceTop(Math.max(0, ...highest))
  const y = (value: number) => HEAD + (HEIGHT - HEAD) * (1 - value / top)
  const inner = Math.max(0, width - SIDE)
  const slot = inner / Math.max(1, days.length)
  const x = (i: number) => slot * (i + 0.5)
  const formatted = (value: number | null | undefined) => (value === null || value === undefined ? '–' : format(value))
  const point = (event: PointerEvent<SVGSVGElement>) => {
    const left = event.clientX - event.currentTarget.getBoundingClientRect().left
    setAt(Math.min(days.length - 1, Math.max(0, Math.floor(left / slot))))
  }
  return (
    <figure aria-labelledby={id} className="min-w-0 rounded-xl border bg-card p-4">
      <figcaption className="flex h-[1.125rem] items-center justify-between gap-3">
        <span id={id} className="truncate text-small text-soft">
          {title}
        </span>
        <span className="shrink-0 text-small text-faint tabular-nums">
          {at === undefined ? '' : shortDay(days[at]!)}
        </span>
      </figcaption>
      <p className="text-title font-semibold tabular-nums">{figure}</p>
      <ul className="mt-1 flex h-[1.125rem] flex-wrap gap-x-3 overflow-hidden text-small text-soft tabular-nums">
        {series.map(({ name, color, values }) => (
          <li key={name} className="flex items-center gap-1.5">
            <span className="size-2 rounded-sm" style={{ background: color }} />
            {name}
            {at !== undefined && <span className="text-text">{formatted(values[at])}</span>}
          </li>
        ))}
      </ul>
      <div ref={frame} className="mt-3" style={{ height: HEIGHT + FOOT }}>
        <svg
          aria-hidden="true"
          width={width}
          height={HEIGHT + FOOT}
          onPointerMove={point}
          onPointerDown={point}
          onPointerLeave={() => setAt(undefined)}
        >
          {GRID.map((part) => (
            <g key={part}>
              <line x1={0} x2={inner} y1={y(top * part)} y2={y(top * part)} stroke="var(--line)" />
              {part > 0 && (
                <text x={width} y={y(top * part) + 3} textAnchor="end" fontSize={10} fill="var(--faint)">
                  {format(top * part)}
                </text>
              )}
            </g>
          ))}
          {at !== undefined && <rect x={slot * at} y={HEAD} width={slot} height={HEIGHT - HEAD} fill="var(--hover)" />}
          {kind === 'bars' ? (
            <Bars days={days} series={series} slot={slot} y={y} />
          ) : (
            <Lines series={series} x={x} y={y} />
          )}
          <text x={0} y={HEIGHT + 14} fontSize={10} fill="var(--faint)">
            {shortDay(days[0] ?? '')}
          </text>
          <text x={inner} y={HEIGHT + 14} fontSize={10} textAnchor="end" fill="var(--faint)">
            {shortDay(days.at(-1) ?? '')}
          </text>
        </svg>
      </div>
      <table className="sr-only">
        <caption>{title} by day</caption>
        <thead>
          <tr>
            <th scope="col">Day</th>
            {series.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {days.map((day, i) => (
            <tr key={day}>
              <th scope="row">{day}</th>
              {series.map(({ name, values }) => (
                <td key={name}>{formatted(values[i])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  )
}

function Bars({
  days,
  series,
  slot,
  y,
}: {
  readonly days: readonly string[]
  readonly series: readonly Series[]
  readonly slot: number
  readonly y: (value: number) => number
}) {
  const gap = Math.min(4, slot * 0.25)
  return days.map((day, i) => {
    let below = 0
    return (
      <g key={day}>
        {series.map(({ name, color, values }) => {
          const value = values[i] ?? 0
          const from = below
          below += value
          return (
            value > 0 && (
              <rect
                key={name}
                x={slot * i + gap / 2}
                y={y(below)}
                width={slot - gap}
                height={Math.max(1, y(from) - y(below))}
                rx={1.5}
                fill={color}
              />
            )
          )
        })}
      </g>
    )
  })
}

function Lines({
  series,
  x,
  y,
}: {
  readonly series: readonly Series[]
  readonly x: (i: number) => number
  readonly y: (value: number) => number
}) {
  return series.map(({ name, color, values }) => (
    <g key={name}>
      <path
        fill="none"
        stroke={color}
        strokeWidth={1.75}
        strokeLinejoin="round"
        strokeLinecap="round"
        d={pathOf(values, x, y)}
      />
      {values.map(
        (value, i) =>
          value !== null && isAlone(values, i) && <circle key={i} cx={x(i)} cy={y(value)} r={3} fill={color} />,
      )}
    </g>
  ))
}

/** A value without neighbors is drawn as a dot. */
function isAlone(values: readonly (number | null)[], i: number): boolean {
  return (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null
}

/** The SVG path, interrupted at gaps. */
function pathOf(values: readonly (number | null)[], x: (i: number) => number, y: (value: number) => number): string {
  return values
    .map((value, i) => {
      if (value === null) return ''
      const place = `${x(i).toFixed(1)} ${y(value).toFixed(1)}`
      return (values[i - 1] ?? null) === null ? `M${place}` : `L${place}`
    })
    .join('')
}

/** 1, 2 or 5 times a power of ten, at or above the value. */
function niceTop(value: number): number {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) * power
}

function shortDay(day: string): string {
  return day === ''
    ? ''
    : new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric', timeZone: 'UTC' }).format(new Date(day))
}

function useWidth(frame: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const element = frame.current
    if (!element) return
    const observer = new ResizeObserver(() => setWidth(element.clientWidth))
    observer.observe(element)
    return () => observer.disconnect()
  }, [frame])
  return width
}
