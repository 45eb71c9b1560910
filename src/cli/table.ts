/** Formats rows as columns for the terminal. */

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows]
  const widths = head.map((_title, i) => Math.max(...all.map((row) => (row[i] ?? '').length)))
  return all
    .map(
      (row) =>
        `${row
          .map((cell, i) => cell.padEnd(widths[i]!))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

/** `2026-11-20 11:45` in UTC, or a dash. */
export function when(ms: number | undefined): string {
  return ms === undefined ? '-' : new Date(ms).toISOString().slice(0, 16).replace('T', ' ')
}
