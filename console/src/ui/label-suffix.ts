/** A suffix for accessible names, for pages that show the same component twice: each landmark needs a unique name. */
import { createContext, useContext } from 'react'

const Context = createContext<string | undefined>(undefined)
export const LabelSuffix = Context.Provider

export function useUniqueLabel(name: string): string {
  const suffix = useContext(Context)
  return suffix === undefined ? name : `${name}, ${suffix}`
}
