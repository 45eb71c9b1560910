/** The main pages, for the sidebar, the command palette and the keyboard shortcuts. */
import type { IconName } from '../ui/icon.tsx'

export interface NavigationItem {
  readonly to: '/' | '/playground' | '/interactions' | '/agents' | '/keys' | '/usage' | '/settings'
  readonly name: string
  readonly icon: IconName
  /** The shortcut key after `g`. */
  readonly letter: string
}

export const NAVIGATION: readonly NavigationItem[] = [
  { to: '/', name: 'Overview', icon: 'overview', letter: 'o' },
  { to: '/playground', name: 'Playground', icon: 'play', letter: 'p' },
  { to: '/interactions', name: 'Runs', icon: 'list', letter: 'i' },
  { to: '/agents', name: 'Agents', icon: 'agent', letter: 'a' },
  { to: '/keys', name: 'API keys', icon: 'key', letter: 'k' },
  { to: '/usage', name: 'Usage', icon: 'chart', letter: 'u' },
  { to: '/settings', name: 'Settings', icon: 'settings', letter: 's' },
]
