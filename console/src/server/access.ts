/** Who calls: an API key that was typed in, kept in this tab until it is closed and nowhere else. */
import { useSyncExternalStore } from 'react'

const KEY = 'errand.key'
const listeners = new Set<() => void>()

function currentKey(): string | null {
  return sessionStorage.getItem(KEY)
}

export function useKey(): string | null {
  return useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, currentKey)
}

export function setKey(key: string | null): void {
  if (key === null) sessionStorage.removeItem(KEY)
  else sessionStorage.setItem(KEY, key)
  for (const listener of listeners) listener()
}

/** Headers that every call of the API carries. */
export function accessHeaders(): Record<string, string> {
  const key = currentKey()
  return key ? { 'x-svc-api-key': key } : {}
}
