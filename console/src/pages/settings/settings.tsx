/** The layout of the settings: navigation at the left, the page beside it. */
import { Link, Outlet, useRouterState } from '@tanstack/react-router'
import { Suspense, useEffect, useRef } from 'react'
import { Loading } from '../../ui/states.tsx'
import { SETTINGS_PAGES } from './settings-pages.ts'

export default function Settings() {
  const nav = useRef<HTMLElement>(null)
  const path = useRouterState({ select: ({ resolvedLocation, location }) => (resolvedLocation ?? location).pathname })
  // On narrow screens the navigation scrolls: keeps the current page visible.
  useEffect(() => {
    nav.current?.querySelector('[aria-current=page]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [path])
  return (
    <div className="mx-auto w-full max-w-7xl lg:grid lg:grid-cols-[13rem_minmax(0,1fr)]">
      <nav
        ref={nav}
        aria-label="Settings"
        className="flex gap-1 overflow-x-auto px-4 pt-4 sm:px-8 lg:flex-col lg:pt-8 lg:pr-0"
      >
        {SETTINGS_PAGES.map(({ to, name }) => (
          <Link
            key={to}
            to={to}
            activeOptions={{ exact: true }}
            className="flex h-8 shrink-0 items-center rounded-md px-2.5 font-medium whitespace-nowrap text-soft hover:bg-hover hover:text-text aria-[current=page]:bg-hover aria-[current=page]:text-text"
          >
            {name}
          </Link>
        ))}
      </nav>
      <div className="min-w-0">
        <Suspense fallback={<Loading />}>
          <Outlet />
        </Suspense>
      </div>
    </div>
  )
}
