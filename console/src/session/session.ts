/** The signed-in user and the current project, which is stored in this browser. */
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { setProject } from '../server/client.ts'
import { type Account, ask, type Me, type Project, type Role } from '../server/console-api.ts'
import { Problem } from '../server/problem.ts'

/** Null if nobody is signed in. */
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

/** Switches to the project that a shared link names. */
export function selectProjectOfLink(): void {
  const { searchParams: search, pathname, hash } = new URL(location.href)
  const id = search.get('project')
  if (id === null) return
  localStorage.setItem(NAME, id)
  search.delete('project')
  history.replaceState(null, '', pathname + (search.size > 0 ? `?${search}` : '') + hash)
}

/** The URL of this page with the project, for other members. */
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

/** Whether the user's role allows changes. The server enforces this. */
export function useMayChange(): boolean {
  const role = useSession()?.role
  return role !== undefined && role !== 'viewer'
}

/** Undefined while loading, and if nobody is signed in. */
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
  // Before the first query below.
  setProject(project?.id)
  return { me, account, project, role: account.role }
}
