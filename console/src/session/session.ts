/** Who is signed in, and in which project they work; the project is kept in this browser. */
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { workIn } from '../server/client.ts'
import { type Account, ask, type Me, type Project, type Role } from '../server/console-api.ts'
import { Problem } from '../server/problem.ts'

/** Null: nobody. */
export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: () =>
    ask<Me>('GET', '/api/me').catch((error) => {
      if (Problem.from(error).status === 401) return null
      throw error
    }),
  staleTime: 60_000,
})

const NAME = 'errand.project'

/** A link that was shared names the project: whoever opens it works there from then on. */
export function takeProjectOfLink(): void {
  const { searchParams: search, pathname, hash } = new URL(location.href)
  const id = search.get('project')
  if (id === null) return
  localStorage.setItem(NAME, id)
  search.delete('project')
  history.replaceState(null, '', pathname + (search.size > 0 ? `?${search}` : '') + hash)
}

/** The address of this page, for others who may see the project. */
export function linkToShare(projectId: string): string {
  const url = new URL(location.href)
  url.searchParams.set('project', projectId)
  return url.href
}

const listeners = new Set<() => void>()

function currentProject(): string | null {
  return localStorage.getItem(NAME)
}

export function chooseProject(id: string | null): void {
  if (id === null) localStorage.removeItem(NAME)
  else localStorage.setItem(NAME, id)
  for (const listener of listeners) listener()
}

export interface Session {
  readonly me: Me
  readonly account: Account
  readonly project: Project | undefined
  readonly role: Role
}

/** Viewers look, and change nothing; the server holds to it, whatever is offered here. */
export function useMayChange(): boolean {
  const role = useSession()?.role
  return role !== undefined && role !== 'viewer'
}

/** Undefined while it is not known, and where nobody is signed in. */
export function useSession(): Session | undefined {
  const { data: me } = useQuery(meQuery)
  const chosen = useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, currentProject)
  if (!me) return undefined
  const account = me.accounts.find(({ projects }) => projects.some(({ id }) => id === chosen)) ?? me.accounts[0]
  if (!account) return undefined
  const project = account.projects.find(({ id }) => id === chosen) ?? account.projects[0]
  // Before anything below asks for the first time.
  workIn(project?.id)
  return { me, account, project, role: account.role }
}
