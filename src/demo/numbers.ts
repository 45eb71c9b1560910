/** Numbers, counts and lists as text. */

/**
 * Formats a number for people: whole numbers as they are, others with two decimals, small ones with three significant
 * digits. No thousands separators: they mean different things in different countries.
 */
export function formatNumber(value: number): string {
  if (Number.isInteger(value)) return String(value)
  const text = Math.abs(value) >= 1 ? value.toFixed(2) : String(Number(value.toPrecision(3)))
  return text.includes('.') && !text.includes('e') ? text.replace(/\.?0+$/, '') : text
}

export function counted(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`
}

export function listed(items: readonly string[], joint = 'and'): string {
  if (items.length <= 1) return items[0] ?? ''
  return `${items.slice(0, -1).join(', ')} ${joint} ${items.at(-1)}`
}

/** One line per value, with a bar of blocks. Indented, so that Markdown shows it unchanged. */
export function textChart(rows: readonly { readonly label: string; readonly value: number }[]): string {
  const width = Math.min(24, Math.max(...rows.map((row) => row.label.length)))
  const largest = Math.max(...rows.map((row) => Math.abs(row.value)))
  // The same number of decimals for all values aligns them.
  const decimals = Math.max(...rows.map((row) => formatNumber(row.value).split('.')[1]?.length ?? 0))
  const shown = (value: number) => (largest < 1 ? formatNumber(value) : value.toFixed(Math.min(decimals, 2)))
  return rows
    .map(({ label, value }) => {
      const bar = '█'.repeat(largest === 0 ? 0 : Math.round((Math.abs(value) / largest) * 24))
      const name = label.length > width ? `${label.slice(0, width - 1)}…` : label
      return `    ${name.padEnd(width)}  ${bar.padEnd(24)}  ${shown(value)}`
    })
    .join('\n')
}
