/** The routes of the console and their query parameters. Pages are loaded on first use. */
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router'
import type { RunFilters } from './server/queries.ts'
import { Page } from './shell/page.tsx'
import { Shell } from './shell/shell.tsx'
import { ButtonLink } from './ui/button.tsx'
import { Failure } from './ui/states.tsx'
import type { UsageSearch } from './usage/usage-query.ts'

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => (
    <Page title="Page not found">
      <ButtonLink to="/">Go to the overview</ButtonLink>
    </Page>
  ),
  errorComponent: ({ error, reset }) => <Failure error={error} retry={reset} />,
})

const overview = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: lazyRouteComponent(() => import('./pages/overview.tsx')),
})

export interface PlaygroundSearch {
  /** The run that is shown. */
  readonly run?: string
  readonly agent?: string
  /** The run to repeat. */
  readonly again?: string
}
const playground = createRoute({
  getParentRoute: () => root,
  path: '/playground',
  validateSearch: (search): PlaygroundSearch => texts(search, ['run', 'agent', 'again']),
  component: lazyRouteComponent(() => import('./pages/playground.tsx')),
})

const interactions = createRoute({
  getParentRoute: () => root,
  path: '/interactions',
  validateSearch: (search): RunFilters =>
    texts(search, ['status', 'agentId', 'model', 'label', 'keyId', 'since', 'order']) as RunFilters,
  component: lazyRouteComponent(() => import('./pages/interactions.tsx')),
})
const interaction = createRoute({
  getParentRoute: () => root,
  path: '/interactions/$id',
  validateSearch: (search): { readonly tab?: string } => texts(search, ['tab']),
  component: lazyRouteComponent(() => import('./pages/interaction.tsx')),
})
const compare = createRoute({
  getParentRoute: () => root,
  path: '/compare',
  validateSearch: (search): { readonly a?: string; readonly b?: string } => texts(search, ['a', 'b']),
  component: lazyRouteComponent(() => import('./pages/compare.tsx')),
})

const agents = createRoute({
  getParentRoute: () => root,
  path: '/agents',
  validateSearch: (search): { readonly q?: string } => texts(search, ['q']),
  component: lazyRouteComponent(() => import('./pages/agents.tsx')),
})
const newAgent = createRoute({
  getParentRoute: () => root,
  path: '/agents/new',
  component: lazyRouteComponent(() => import('./pages/new-agent.tsx')),
})
const agent = createRoute({
  getParentRoute: () => root,
  path: '/agents/$id',
  validateSearch: (search): { readonly tab?: string } => texts(search, ['tab']),
  component: lazyRouteComponent(() => import('./pages/agent.tsx')),
})

const signedOutPages = [
  ...(['/welcome', '/invite', '/reset'] as const).map((path) =>
    createRoute({
      getParentRoute: () => root,
      path,
      component: lazyRouteComponent(() => import('./session/link-page.tsx')),
    }),
  ),
  createRoute({
    getParentRoute: () => root,
    path: '/sign-up',
    component: lazyRouteComponent(() => import('./session/sign-up.tsx')),
  }),
] as const
const keys = createRoute({
  getParentRoute: () => root,
  path: '/keys',
  component: lazyRouteComponent(() => import('./pages/keys.tsx')),
})
const usage = createRoute({
  getParentRoute: () => root,
  path: '/usage',
  validateSearch: (search): UsageSearch =>
    texts(search, ['days', 'from', 'to', 'project', 'agent', 'model', 'key', 'by']),
  component: lazyRouteComponent(() => import('./pages/usage.tsx')),
})
const settings = createRoute({
  getParentRoute: () => root,
  path: '/settings',
  component: lazyRouteComponent(() => import('./pages/settings/settings.tsx')),
})
const settingsPages = [
  createRoute({
    getParentRoute: () => settings,
    path: '/',
    component: lazyRouteComponent(() => import('./pages/settings/server.tsx')),
  }),
  createRoute({
    getParentRoute: () => settings,
    path: '/models',
    component: lazyRouteComponent(() => import('./pages/settings/models.tsx')),
  }),
  createRoute({
    getParentRoute: () => settings,
    path: '/mcp',
    component: lazyRouteComponent(() => import('./pages/settings/mcp.tsx')),
  }),
  createRoute({
    getParentRoute: () => settings,
    path: '/webhooks',
    component: lazyRouteComponent(() => import('./pages/settings/webhooks.tsx')),
  }),
  createRoute({
    getParentRoute: () => settings,
    path: '/skills',
    component: lazyRouteComponent(() => import('./pages/settings/skills.tsx')),
  }),
  createRoute({
    getParentRoute: () => settings,
    path: '/credentials',
    component: lazyRouteComponent(() => import('./pages/settings/credentials.tsx')),
  }),
  createRoute({
    getParentRoute: () => settings,
    path: '/members',
    component: lazyRouteComponent(() => import('./pages/settings/members.tsx')),
  }),
  createRoute({
    getParentRoute: () => settings,
    path: '/account',
    component: lazyRouteComponent(() => import('./pages/settings/account.tsx')),
  }),
  createRoute({
    getParentRoute: () => settings,
    path: '/you',
    component: lazyRouteComponent(() => import('./pages/settings/profile.tsx')),
  }),
  createRoute({
    getParentRoute: () => settings,
    path: '/audit',
    component: lazyRouteComponent(() => import('./pages/settings/audit.tsx')),
  }),
] as const

const routeTree = root.addChildren([
  overview,
  playground,
  interactions,
  interaction,
  compare,
  agents,
  newAgent,
  agent,
  keys,
  usage,
  settings.addChildren(settingsPages),
  ...signedOutPages,
])

/** The named parameters that are set, as strings. */
function texts<K extends string>(
  search: Readonly<Record<string, unknown>>,
  names: readonly K[],
): { [key in K]?: string } {
  return Object.fromEntries(
    names
      .filter((name) => search[name] !== undefined && search[name] !== '')
      .map((name) => [name, String(search[name])]),
  ) as { [key in K]?: string }
}

export function createConsoleRouter() {
  return createRouter({ routeTree, basepath: '/console', defaultPreload: 'intent', scrollRestoration: true })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createConsoleRouter>
  }
}
