/** Placeholders of a page: loading, empty, failed. And notices. */
import type { ReactNode } from 'react'
import { Problem } from '../server/problem.ts'
import { Button } from './button.tsx'
import { cx } from './cx.ts'
import { Icon, type IconName } from './icon.tsx'

/** A placeholder with the size of the content, so that nothing moves when the content arrives. */
export function Skeleton({ className }: { readonly className?: string }) {
  return <span aria-hidden="true" className={cx('block rounded bg-hover animate-pulse', className)} />
}

export function Loading({ rows = 6 }: { readonly rows?: number }) {
  return (
    <div role="status" aria-label="Loading" className="grid gap-3 py-2">
      {Array.from({ length: rows }, (_, i) => (
        <Skeleton key={i} className={cx('h-5', i % 3 === 2 ? 'w-2/3' : 'w-full')} />
      ))}
    </div>
  )
}

interface EmptyProps {
  readonly icon: IconName
  readonly title: string
  readonly children?: ReactNode
  readonly action?: ReactNode
}

export function Empty({ icon, title, children, action }: EmptyProps) {
  return (
    <div className="grid justify-items-center px-6 py-14 text-center">
      <span className="mb-4 grid size-10 place-items-center rounded-xl border border-line bg-card text-soft">
        <Icon name={icon} className="size-5" />
      </span>
      <h2 className="text-lead font-semibold">{title}</h2>
      {children && <div className="mt-1 max-w-md text-body text-soft text-pretty">{children}</div>}
      {action && <div className="mt-5 flex flex-wrap justify-center gap-2">{action}</div>}
    </div>
  )
}

export function Failure({ error, retry }: { readonly error: unknown; readonly retry?: () => void }) {
  const problem = Problem.from(error)
  return (
    <div role="alert" className="grid justify-items-center px-6 py-14 text-center">
      <span className="mb-4 grid size-10 place-items-center rounded-xl bg-red-soft text-red">
        <Icon name="alert" className="size-5" />
      </span>
      <h2 className="text-lead font-semibold">{problem.title}</h2>
      <p className="mt-1 max-w-md text-body text-soft text-pretty">{problem.message}</p>
      {problem.requestId && <p className="mt-2 font-mono text-small text-faint">{problem.requestId}</p>}
      {retry && problem.status !== 404 && (
        <Button className="mt-5" icon="retry" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  )
}

/** A highlighted message. */
export function Notice({
  tone = 'amber',
  title,
  children,
  action,
}: {
  readonly tone?: 'amber' | 'red' | 'blue' | 'green'
  readonly title?: ReactNode
  readonly children?: ReactNode
  readonly action?: ReactNode
}) {
  const tones = {
    amber: 'bg-amber-soft text-amber',
    red: 'bg-red-soft text-red',
    blue: 'bg-blue-soft text-blue',
    green: 'bg-green-soft text-green',
  }
  return (
    <div
      role={tone === 'red' ? 'alert' : undefined}
      className={cx('flex gap-2.5 rounded-lg px-3 py-2.5 text-body', tones[tone])}
    >
      <Icon name={tone === 'green' ? 'check' : 'alert'} className="mt-0.5" />
      <div className="min-w-0 flex-1 break-words">
        {title && <p className="font-medium">{title}</p>}
        {children && <div className="text-text">{children}</div>}
      </div>
      {action}
    </div>
  )
}
