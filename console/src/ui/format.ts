/** Formats numbers, sizes, costs and times for people. */
const number = new Intl.NumberFormat('en')
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const dayTime = new Intl.DateTimeFormat('en', {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
})
const full = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' })

export function count(value: number): string {
  return value < 100_000 ? number.format(value) : compact.format(value)
}

/** `1 model call`, `2 model calls`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`
}

/** Milliseconds: `820 ms`, `4.2 s`, `3 min 05 s`. */
export function duration(ms: number | undefined): string {
  if (ms === undefined) return '–'
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1000).toFixed(ms < 9_950 ? 2 : 1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`
  return `${Math.floor(seconds / 3600)} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, '0')} min`
}

export function bytes(size: number): string {
  if (size < 1000) return `${size} B`
  if (size < 1_000_000) return `${(size / 1000).toFixed(1)} kB`
  return `${(size / 1_000_000).toFixed(1)} MB`
}

export function cost(amount: string | number | undefined, currency = 'USD'): string {
  if (amount === undefined) return '–'
  const value = Number(amount)
  const digits = value === 0 || value >= 1 ? 2 : value >= 0.01 ? 3 : 5
  return new Intl.NumberFormat('en', {
    style: 'currency',
    currency,
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  }).format(value)
}

/** `just now`, `4 min ago`, `3 h ago`; after a day, the date. */
export function ago(time: string, now = Date.now()): string {
  const seconds = Math.max(0, (now - Date.parse(time)) / 1000)
  if (seconds < 45) return 'just now'
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`
  return dayTime.format(new Date(time))
}

export function moment(time: string): string {
  return full.format(new Date(time))
}
