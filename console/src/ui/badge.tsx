/** Badges, and the status of a run as a badge. */
import type { ReactNode } from 'react'
import { cx } from './cx.ts'

export type Tone = 'plain' | 'green' | 'red' | 'amber' | 'blue' | 'accent'
const TONES: Record<Tone, string> = {
  plain: 'bg-hover text-soft',
  green: 'bg-green-soft text-green',
  red: 'bg-red-soft text-red',
  amber: 'bg-amber-soft text-amber',
  blue: 'bg-blue-soft text-blue',
  accent: 'bg-accent-soft text-accent',
}

export function Badge({
  tone = 'plain',
  children,
  className,
}: {
  readonly tone?: Tone
  readonly children: ReactNode
  readonly className?: string
}) {
  return (
    <span
      className={cx(
        'inline-flex items-center justify-self-start gap-1 rounded px-1.5 h-5 text-micro font-medium whitespace-nowrap',
        TONES[tone],
        className,
      )}
    >
      {children}
    </span>
  )
}

const STATUS: Record<string, { readonly tone: Tone; readonly label: string }> = {
  running: { tone: 'blue', label: 'Running' },
  completed: { tone: 'green', label: 'Completed' },
  failed: { tone: 'red', label: 'Failed' },
  cancelled: { tone: 'plain', label: 'Cancelled' },
}
const STAGES: Record<string, string> = {
  queued: 'Queued',
  provisioning: 'Preparing',
  working: 'Running',
  requires_action: 'Needs approval',
  settling: 'Finishing',
}

/** The status of a run, as color and text. */
export function Status({ status, stage }: { readonly status: string; readonly stage?: string }) {
  const { tone, label } = STATUS[status] ?? { tone: 'plain' as const, label: status }
  const waits = stage === 'requires_action'
  return (
    <Badge tone={waits ? 'amber' : tone}>
      <span className={cx('size-1.5 rounded-full bg-current', status === 'running' && 'animate-pulse')} />
      {status === 'running' && stage ? (STAGES[stage] ?? label) : label}
    </Badge>
  )
}
