/** The same figures that the demo model is asked for, worked out another way: what its answers are held against. */
import { readFileSync } from 'node:fs'

export const WEATHER = readFileSync(new URL('../../examples/seattle-weather.csv', import.meta.url), 'utf8')
export const ACCESS = readFileSync(new URL('../../examples/access.log', import.meta.url), 'utf8')

export interface Day {
  readonly date: string
  readonly precipitation: number
  readonly temp_max: number
  readonly temp_min: number
  readonly wind: number
  readonly weather: string
}

export const DAYS: readonly Day[] = WEATHER.trim()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [date = '', precipitation, tempMax, tempMin, wind, weather = ''] = line.trim().split(',')
    return {
      date,
      precipitation: Number(precipitation),
      temp_max: Number(tempMax),
      temp_min: Number(tempMin),
      wind: Number(wind),
      weather,
    }
  })

export interface Hit {
  readonly ip: string
  readonly path: string
  readonly status: number
  readonly bytes: number
}

export const HITS: readonly Hit[] = ACCESS.trim()
  .split('\n')
  .map((line) => {
    const words = line.split(' ')
    return { ip: words[0]!, path: words[6]!.split('?')[0]!, status: Number(words[8]), bytes: Number(words[9]) || 0 }
  })

export const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
export const mean = (values: readonly number[]) => sum(values) / values.length

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const half = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2
}

export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item])
  return groups
}

/** The keys with the most items, most first. */
export function commonest<T>(items: readonly T[], keyOf: (item: T) => string): [string, number][] {
  return [...groupBy(items, keyOf)]
    .map(([key, group]): [string, number] => [key, group.length])
    .sort((a, b) => b[1] - a[1])
}

/** A number in the form of the answers: two decimals, no trailing zeros. */
export const two = (value: number) => String(Number(value.toFixed(2)))

/** A number in the form of the charts: two decimals. */
export const fixed = (value: number) => value.toFixed(2)
