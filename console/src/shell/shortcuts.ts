/** Keyboard shortcuts outside text fields: ⌘K or Ctrl+K and `/` open the palette, `g` and a letter a page, `c` a new run. */
import { useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { NAVIGATION } from './navigation.ts'

const SEQUENCE_MS = 1_200

export function useShortcuts(openPalette: () => void): void {
  const navigate = useNavigate()
  useEffect(() => {
    let leader = 0
    const onKey = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        openPalette()
        return
      }
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return
      const place =
        event.timeStamp - leader < SEQUENCE_MS ? NAVIGATION.find(({ letter }) => letter === event.key) : undefined
      leader = event.key === 'g' ? event.timeStamp : 0
      if (place) navigate({ to: place.to })
      else if (event.key === 'c') navigate({ to: '/playground' })
      else if (event.key === '/') openPalette()
      else return
      event.preventDefault()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [navigate, openPalette])
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) ||
      target.closest('[role=dialog],[role=menu]') !== null)
  )
}
