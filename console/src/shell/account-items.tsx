/** What the account's menu offers. It is open from the start: it was loaded because somebody pressed its button. */
import { useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { setKey } from '../server/access.ts'
import { Menu, MenuItem, MenuLabel, MenuRule } from '../ui/layer.tsx'
import { setTheme, useTheme } from './theme.ts'

const THEMES = [
  ['system', 'As the system', 'monitor'],
  ['light', 'Light', 'sun'],
  ['dark', 'Dark', 'moon'],
] as const

export default function AccountItems({ trigger }: { readonly trigger: ReactNode }) {
  const cache = useQueryClient()
  const theme = useTheme()
  const leave = () => {
    setKey(null)
    cache.clear()
  }
  return (
    <Menu align="start" opened trigger={trigger}>
      <MenuLabel>Colours</MenuLabel>
      {THEMES.map(([name, words, icon]) => (
        <MenuItem key={name} icon={icon} checked={theme === name} onSelect={() => setTheme(name)}>
          {words}
        </MenuItem>
      ))}
      <MenuRule />
      <MenuItem icon="leave" onSelect={leave}>
        Forget key
      </MenuItem>
    </Menu>
  )
}
