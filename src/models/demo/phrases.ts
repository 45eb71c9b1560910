/** Parts of a table query in words: measures, groups, conditions. */
import { listed } from './numbers.ts'
import type { Filter, Group, Measure } from './task.ts'

export function phraseOf({ op, column }: { readonly op: Measure['op']; readonly column?: string | null }): string {
  if (op === 'count') return 'number of rows'
  const noun = {
    mean: 'mean',
    sum: 'sum',
    min: 'minimum',
    max: 'maximum',
    median: 'median',
    std: 'standard deviation',
    unique: 'number of different values',
  }[op]
  return `${noun} of ${column}`
}

const MONTHS = 'January February March April May June July August September October November December'.split(' ')
const WEEKDAYS = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split(' ')

export function labelOf(group: Group, key: string | number): string {
  if (group.part === 'month') return MONTHS[Number(key) - 1] ?? String(key)
  if (group.part === 'weekday') return WEEKDAYS[Number(key)] ?? String(key)
  return group.part === 'hour' ? `${String(key).padStart(2, '0')}:00` : String(key)
}

export function groupName(group: Group): string {
  if (!group.part) return group.column
  return {
    year: 'year',
    month: 'calendar month',
    year_month: 'month',
    weekday: 'weekday',
    day: 'day',
    hour: 'hour of the day',
  }[group.part]
}

/** The conditions in words; empty where there are none. */
export function conditionsOf(filters: readonly Filter[]): string {
  return listed(filters.map(conditionOf))
}

function conditionOf(filter: Filter): string {
  switch (filter.kind) {
    case 'compare':
      return `${filter.column} ${{ '==': 'is', '!=': 'is not', '>': 'is above', '>=': 'is at least', '<': 'is below', '<=': 'is at most' }[filter.op]} ${filter.value}`
    case 'text':
      return `${filter.column} is ${filter.not ? 'not ' : ''}${listed(filter.values, 'or')}`
    case 'date':
      return `${filter.column} is ${{ '==': '', '>': 'after ', '>=': 'not before ', '<': 'before ', '<=': 'not after ' }[filter.op]}${filter.value}`
    case 'contains':
      return `${filter.column} contains "${filter.value}"`
    case 'part':
      return `the ${filter.part} of ${filter.column} is ${filter.part === 'month' ? MONTHS[filter.value - 1] : filter.value}`
    default:
      return filter satisfies never
  }
}
