/** Of which of several alike on one page something is part: goes into the names of its places, so that each has one of its own. */
import { createContext, useContext } from 'react'

const Context = createContext<string | undefined>(undefined)
export const LabelSuffix = Context.Provider

export function useUniqueLabel(name: string): string {
  const whose = useContext(Context)
  return whose === undefined ? name : `${name}, ${whose}`
}
