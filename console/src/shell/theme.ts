/** The theme: light, dark, or that of the system. Stored in this browser; public/theme.js applies it before the first paint. */
import { useSyncExternalStore } from 'react'

export type Theme = 'system' | 'light' | 'dark'

const NAME = 'errand.theme'
const listeners = new Set<() => void>()

function current(): Theme {
  return (document.documentElement.dataset.theme as Theme | undefined) ?? 'system'
}

export function setTheme(theme: Theme): void {
  if (theme === 'system') {
    delete document.documentElement.dataset.theme
    localStorage.removeItem(NAME)
  } else {
    document.documentElement.dataset.theme = theme
    localStorage.setItem(NAME, theme)
  }
  for (const listener of listeners) listener()
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, current)
}
