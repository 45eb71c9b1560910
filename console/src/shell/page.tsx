/** The layout of a page: title, actions, width. */
import { type ReactNode, useEffect } from 'react'
import { cx } from '../ui/cx.ts'

interface PageProps {
  readonly title: string
  readonly about?: ReactNode
  readonly actions?: ReactNode
  /** A breadcrumb above the title. */
  readonly above?: ReactNode
  readonly narrow?: boolean
  readonly children: ReactNode
}

export function Page({ title, about, actions, above, narrow, children }: PageProps) {
  useTitle(title)
  return (
    <div className={cx('mx-auto w-full px-4 pt-5 pb-16 sm:px-8 sm:pt-7', narrow ? 'max-w-4xl' : 'max-w-7xl')}>
      {above && <div className="mb-2 text-small text-soft">{above}</div>}
      <header className="mb-5 flex flex-wrap items-start gap-x-4 gap-y-3">
        <div className="min-w-0 flex-1 basis-60">
          <h1 className="text-title font-semibold tracking-tight [overflow-wrap:anywhere]">{title}</h1>
          {about && <div className="mt-0.5 text-soft text-pretty">{about}</div>}
        </div>
        {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Errand`
  }, [title])
}

/** A framed section of a page. */
export function Card({
  title,
  about,
  actions,
  children,
  flush,
}: {
  readonly title?: ReactNode
  readonly about?: ReactNode
  readonly actions?: ReactNode
  readonly children: ReactNode
  readonly flush?: boolean
}) {
  return (
    <section className="rounded-xl border bg-card">
      {title && (
        <header className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 pt-3 pb-2">
          <div className="min-w-0 flex-1">
            <h2 className="text-body font-semibold">{title}</h2>
            {about && <p className="text-small text-faint">{about}</p>}
          </div>
          {actions}
        </header>
      )}
      <div className={flush ? 'overflow-hidden rounded-b-xl' : cx('px-4 pb-4', !title && 'pt-4')}>{children}</div>
    </section>
  )
}
