/** At the foot of the way around: how it looks, and the way out. Menus are loaded when the first one is opened. */
import { lazy, Suspense, useState } from 'react'
import { Icon } from '../ui/icon.tsx'

const AccountItems = lazy(() => import('./account-items.tsx'))

export function AccountMenu() {
  const [opened, setOpened] = useState(false)
  const trigger = (
    <button
      type="button"
      aria-haspopup="menu"
      onClick={() => setOpened(true)}
      className="flex h-9 items-center gap-2.5 rounded-md px-2 text-left text-soft hover:bg-hover hover:text-text"
    >
      <Icon name="key" />
      <span className="min-w-0 flex-1 truncate">Signed in by key</span>
      <Icon name="updown" className="text-faint" />
    </button>
  )
  if (!opened) return trigger
  return (
    <Suspense fallback={trigger}>
      <AccountItems trigger={trigger} />
    </Suspense>
  )
}
