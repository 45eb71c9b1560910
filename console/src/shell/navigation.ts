/** Where one can go: the way around, the palette and the shortcuts all read this list. */
import type { IconName } from '../ui/icon.tsx'

export interface NavigationItem {
  readonly to: '/' | '/playground' | '/interactions' | '/agents' | '/keys' | '/usage' | '/settings'
  readonly name: string
  readonly icon: IconName
  /** After `g`. */
  readonly letter: string
}

export const NAVIGATION: readonly NavigationItem[] = [
  { to: '/', name: 'Overview', icon: 'overview', letter: 'o' },
  { to: '/playground', name: 'Playground', icon: 'play', letter: 'p' },
  { to: '/interactions', name: 'Interactions', icon: 'list', letter: 'i' },
  { to: '/agents', name: 'Agents', icon: 'agent', letter: 'a' },
  { to: '/keys', name: 'Keys', icon: 'key', letter: 'k' },
  { to: '/usage', name: 'Usage', icon: 'chart', letter: 'u' },
  { to: '/settings', name: 'Settings', icon: 'settings', letter: 's' },
]
