/** Buttons whose menus are loaded on the first press. */
import { lazy, type ReactNode, Suspense, useState } from 'react'
import type { Session } from '../session/session.ts'
import { Icon, type IconName } from '../ui/icon.tsx'

const AccountItems = lazy(() => import('./account-items.tsx'))
const ProjectItems = lazy(() => import('./project-items.tsx'))

export function AccountMenu({ session }: { readonly session: Session }) {
  return (
    <LazyMenu
      icon="people"
      text={session.me.user.email}
      label="Your account"
      items={(trigger) => <AccountItems trigger={trigger} session={session} />}
    />
  )
}

export function ProjectMenu({ session }: { readonly session: Session }) {
  return (
    <LazyMenu
      icon="columns"
      text={session.project?.name ?? 'No project'}
      label="Project"
      items={(trigger) => <ProjectItems trigger={trigger} session={session} />}
      framed
    />
  )
}

interface LazyMenuProps {
  readonly icon: IconName
  readonly text: string
  readonly label: string
  readonly framed?: boolean
  readonly items: (trigger: ReactNode) => ReactNode
}

function LazyMenu({ icon, text, label, framed, items }: LazyMenuProps) {
  const [pressed, setPressed] = useState(false)
  const trigger = (
    <button
      type="button"
      aria-haspopup="menu"
      aria-label={`${label}: ${text}`}
      onClick={() => setPressed(true)}
      className={`flex h-9 w-full items-center gap-2.5 rounded-md px-2 text-left hover:bg-hover ${framed ? 'border bg-card font-medium' : 'text-soft hover:text-text'}`}
    >
      <Icon name={icon} className="text-soft" />
      <span className="min-w-0 flex-1 truncate">{text}</span>
      <Icon name="updown" className="text-faint" />
    </button>
  )
  return pressed ? <Suspense fallback={trigger}>{items(trigger)}</Suspense> : trigger
}
