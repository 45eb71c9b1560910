/** The account menu. Rendered open, because it is loaded when its button is pressed. */
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ask } from '../server/console-api.ts'
import { meQuery, type Session } from '../session/session.ts'
import { Menu, MenuItem, MenuLabel, MenuRule } from '../ui/overlay.tsx'
import { setTheme, useTheme } from './theme.ts'

const THEMES = [
  ['system', 'System', 'monitor'],
  ['light', 'Light', 'sun'],
  ['dark', 'Dark', 'moon'],
] as const

export default function AccountItems({ trigger, session }: { readonly trigger: ReactNode; readonly session: Session }) {
  const cache = useQueryClient()
  const navigate = useNavigate()
  const theme = useTheme()
  const leave = async () => {
    await ask('POST', '/auth/sign-out', {})
    cache.setQueryData(meQuery.queryKey, null)
    cache.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== meQuery.queryKey[0] })
  }
  return (
    <Menu align="start" opened trigger={trigger}>
      <MenuLabel>
        {session.me.user.name}, {session.role} of {session.account.name}
      </MenuLabel>
      <MenuItem icon="shield" onSelect={() => navigate({ to: '/settings/you' })}>
        Password and sessions
      </MenuItem>
      <MenuRule />
      <MenuLabel>Theme</MenuLabel>
      {THEMES.map(([name, label, icon]) => (
        <MenuItem key={name} icon={icon} checked={theme === name} onSelect={() => setTheme(name)}>
          {label}
        </MenuItem>
      ))}
      <MenuRule />
      <MenuItem icon="leave" onSelect={leave}>
        Sign out
      </MenuItem>
    </Menu>
  )
}
