/** The layout around every page: sidebar (a sheet on narrow screens) and page. */

import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useRouterState } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { meQuery, type Session, useSession } from '../session/session.ts'
import { IconButton } from '../ui/button.tsx'
import { cx } from '../ui/cx.ts'
import { Icon } from '../ui/icon.tsx'
import { Failure, Loading } from '../ui/states.tsx'
import { Toasts } from '../ui/toast.tsx'
import { DisabledNotice } from './disabled-notice.tsx'
import { AccountMenu, ProjectMenu } from './lazy-menu.tsx'
import { Logo } from './logo.tsx'
import { NAVIGATION } from './navigation.ts'
import { useShortcuts } from './shortcuts.ts'

const SignIn = lazy(() => import('../session/sign-in.tsx'))
const NoAccount = lazy(() => import('../session/no-account.tsx'))
const Palette = lazy(() => import('./palette.tsx'))
const Sheet = lazy(() => import('../ui/overlay.tsx').then(({ Sheet }) => ({ default: Sheet })))

const SEARCH_KEYS = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘K' : 'Ctrl K'

/** Pages for signed-out users. */
const SIGNED_OUT_PAGES = /^\/(welcome|invite|reset|sign-up)$/

export function Shell() {
  const { data: me, error, refetch } = useQuery(meQuery)
  const session = useSession()
  // The page that is shown, not the one that is still loading.
  const signedOut = useRouterState({
    select: ({ resolvedLocation, location }) => SIGNED_OUT_PAGES.test((resolvedLocation ?? location).pathname),
  })
  return (
    <>
      {signedOut ? (
        <Suspense>
          <Outlet />
        </Suspense>
      ) : error ? (
        <main>
          <h1 className="sr-only">Errand</h1>
          <Failure error={error} retry={() => refetch()} />
        </main>
      ) : session ? (
        <Frame key={session.project?.id} session={session} />
      ) : (
        me !== undefined && <Suspense>{me === null ? <SignIn /> : <NoAccount me={me} />}</Suspense>
      )}
      <Toasts />
    </>
  )
}

function Frame({ session }: { readonly session: Session }) {
  const [palette, setPalette] = useState(false)
  const [sheet, setSheet] = useState(false)
  const path = useRouterState({ select: ({ location }) => location.pathname })
  const main = useRef<HTMLElement>(null)
  useShortcuts(() => setPalette(true))
  // Moves the keyboard focus to each new page.
  useEffect(() => {
    setSheet(false)
    main.current?.focus({ preventScroll: true })
  }, [path])

  const sidebar = <Sidebar session={session} onSearch={() => setPalette(true)} />
  return (
    <div className="grid min-h-dvh grid-rows-[auto_1fr] lg:grid-cols-[14rem_1fr] lg:grid-rows-1">
      <a
        href="#main"
        className="sr-only focus:not-sr-only focus:fixed focus:left-3 focus:top-3 focus:z-50 focus:rounded-md focus:bg-card focus:px-3 focus:py-2"
      >
        Skip to content
      </a>
      <aside className="sticky top-0 hidden h-dvh border-r bg-panel lg:block">{sidebar}</aside>
      <header className="sticky top-0 z-30 flex h-12 items-center gap-1 border-b bg-panel px-2 lg:hidden">
        <IconButton icon="menu" label="Menu" onClick={() => setSheet(true)} />
        <Logo />
        <span className="flex-1" />
        <IconButton icon="search" label="Search" onClick={() => setPalette(true)} />
      </header>
      <main id="main" ref={main} tabIndex={-1} className="min-w-0 outline-none focus-visible:outline-none">
        {!session.account.enabled && <DisabledNotice session={session} />}
        <Suspense fallback={<PageFallback />}>
          <Outlet />
        </Suspense>
      </main>
      <Suspense fallback={null}>
        {sheet && (
          <Sheet open onClose={() => setSheet(false)} title="Menu">
            {sidebar}
          </Sheet>
        )}
        {palette && <Palette onClose={() => setPalette(false)} />}
      </Suspense>
    </div>
  )
}

function PageFallback() {
  return (
    <div className="p-6">
      <Loading />
    </div>
  )
}

function Sidebar({ session, onSearch }: { readonly session: Session; readonly onSearch: () => void }) {
  return (
    <div className="flex h-full flex-col p-3">
      <div className="flex h-9 items-center px-2">
        <Logo />
      </div>
      <div className="mt-3">
        <ProjectMenu session={session} />
      </div>
      <button
        type="button"
        onClick={onSearch}
        className="mt-2 flex h-8 items-center gap-2.5 rounded-md border bg-card px-2 text-soft hover:border-line-strong"
      >
        <Icon name="search" />
        <span className="flex-1 text-left">Search</span>
        <kbd className="rounded border px-1 font-sans text-micro text-faint max-lg:hidden">{SEARCH_KEYS}</kbd>
      </button>
      <nav aria-label="Console" className="mt-4 grid gap-0.5">
        {NAVIGATION.map(({ to, name, icon }) => (
          <Link
            key={to}
            to={to}
            activeOptions={{ exact: to === '/' }}
            className="group flex h-8 items-center gap-2.5 rounded-md px-2 font-medium text-soft transition-colors hover:bg-hover hover:text-text aria-[current=page]:bg-hover aria-[current=page]:text-text"
          >
            <Icon name={icon} className="group-aria-[current=page]:text-accent" />
            {name}
          </Link>
        ))}
      </nav>
      <span className="flex-1" />
      <a
        href="/docs"
        className={cx('flex h-8 items-center gap-2.5 rounded-md px-2 text-soft hover:bg-hover hover:text-text')}
      >
        <Icon name="book" />
        Documentation
      </a>
      <AccountMenu session={session} />
    </div>
  )
}
