/** The entry point of the console. */
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { createRoot } from 'react-dom/client'
import './style.css'
import './server/client.ts'
import { createConsoleRouter } from './router.tsx'
import { Problem } from './server/problem.ts'
import { selectProjectOfLink } from './session/session.ts'

// The CSP only allows style elements with its nonce. Dialogs add one to lock scrolling.
Object.assign(globalThis, {
  __webpack_nonce__: document.querySelector<HTMLMetaElement>('meta[name=csp-nonce]')?.content,
})

const cache = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, error) => failures < 2 && Problem.from(error).status >= 500,
    },
  },
})

selectProjectOfLink()
createRoot(document.getElementById('root') as HTMLElement).render(
  <QueryClientProvider client={cache}>
    <RouterProvider router={createConsoleRouter()} />
  </QueryClientProvider>,
)
