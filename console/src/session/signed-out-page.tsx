/** The layout of pages for signed-out users. */
import type { ReactNode } from 'react'
import { Logo } from '../shell/logo.tsx'
import { useTitle } from '../shell/page.tsx'

export function SignedOutPage({
  title,
  about,
  children,
  below,
}: {
  readonly title: string
  readonly about?: ReactNode
  readonly children: ReactNode
  readonly below?: ReactNode
}) {
  useTitle(title)
  return (
    <main className="grid min-h-dvh lg:grid-cols-[minmax(0,1fr)_minmax(0,1.1fr)]">
      <div className="grid place-items-center px-5 py-10">
        <div className="w-full max-w-sm">
          <Logo />
          <h1 className="mt-10 text-title font-semibold tracking-tight">{title}</h1>
          {about && <div className="mt-1 text-soft text-pretty">{about}</div>}
          {children}
          {below && <div className="mt-6 border-t pt-4 text-small text-faint">{below}</div>}
        </div>
      </div>
      <Picture />
    </main>
  )
}

/** An illustration: a run in the playground. */
function Picture() {
  const steps = [
    ['Reading sales.csv to see its columns.', 'w-40'],
    ['Run python', 'w-64'],
    ['Write outputs/report.md', 'w-52'],
  ] as const
  return (
    <div aria-hidden="true" className="hidden place-items-center border-l bg-panel p-10 lg:grid">
      <div className="grid w-full max-w-md gap-3">
        <p className="ml-auto rounded-xl rounded-br-sm bg-hover px-3.5 py-2.5">Which region sold most in sales.csv?</p>
        {steps.map(([text, width], i) => (
          <div key={text} className="rounded-lg border bg-card p-3">
            <p className="flex items-center gap-2.5 font-medium">
              <span className="size-1.5 rounded-full bg-green" />
              {text}
            </p>
            {i > 0 && (
              <div className="mt-2.5 grid gap-2 pl-4">
                <span className={`h-2 rounded bg-hover ${width}`} />
                <span className="h-2 w-32 rounded bg-hover" />
              </div>
            )}
          </div>
        ))}
        <p className="px-1 text-lead">North, with 10,240 in total.</p>
        <p className="px-1 text-small text-faint">completed · 4.2 s · 3 tool calls</p>
      </div>
    </div>
  )
}
