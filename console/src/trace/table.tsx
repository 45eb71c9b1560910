/** A CSV or TSV file as a table. Loaded on first use. */
import { parse } from 'papaparse'
import { useMemo } from 'react'
import { cx } from '../ui/cx.ts'
import { count } from '../ui/format.ts'
import { Scroller } from '../ui/scroller.tsx'

const MAX_ROWS = 200
const MAX_COLUMNS = 60

export default function Table({
  text,
  name,
  className,
}: {
  readonly text: string
  readonly name: string
  readonly className?: string
}) {
  const rows = useMemo(() => parse<string[]>(text, { skipEmptyLines: true }).data, [text])
  const [head = [], ...body] = rows.map((row) => row.slice(0, MAX_COLUMNS))
  const numeric = head.map((_, i) => body.length > 0 && body.slice(0, MAX_ROWS).every((row) => isNumber(row[i] ?? '')))
  return (
    <Scroller label={name} className={cx('overflow-auto', className)}>
      <table className="w-full border-separate border-spacing-0 text-small">
        <thead>
          <tr>
            {head.map((cell, i) => (
              <th
                key={i}
                scope="col"
                className={cx(
                  'sticky top-0 border-b bg-code px-3 py-1.5 font-medium whitespace-nowrap',
                  numeric[i] ? 'text-right' : 'text-left',
                )}
              >
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {body.slice(0, MAX_ROWS).map((row, i) => (
            <tr key={i} className="hover:bg-hover">
              {head.map((_, j) => (
                <td
                  key={j}
                  className={cx('max-w-80 truncate border-b px-3 py-1', numeric[j] && 'text-right tabular-nums')}
                >
                  {row[j]}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {body.length > MAX_ROWS && (
        <p className="px-3 py-2 text-small text-faint">
          Showing the first {MAX_ROWS} of {count(body.length)} rows.
        </p>
      )}
    </Scroller>
  )
}

function isNumber(cell: string): boolean {
  return /^\s*[-+]?[\d.,]*(?:e[-+]?\d+)?%?\s*$/i.test(cell)
}
