/** The sign-in page: email and password, or the operator's OpenID Connect provider. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useRouterState } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { ask, type SignInOptions } from '../server/console-api.ts'
import { Problem } from '../server/problem.ts'
import { Button } from '../ui/button.tsx'
import { Field, Input } from '../ui/field.tsx'
import { Notice } from '../ui/states.tsx'
import { meQuery } from './session.ts'
import { SignedOutPage } from './signed-out-page.tsx'

const optionsQuery = { queryKey: ['sign-in-options'], queryFn: () => ask<SignInOptions>('GET', '/api/sign-in-options') }

export default function SignIn() {
  const cache = useQueryClient()
  const options = useQuery(optionsQuery)
  const refused = useRouterState({ select: ({ location }) => (location.search as { readonly error?: string }).error })
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const signIn = useMutation({
    mutationFn: () => ask('POST', '/auth/sign-in/email', { email, password }),
    onSuccess: () => cache.resetQueries({ queryKey: meQuery.queryKey }),
  })
  const oidc = useMutation({
    mutationFn: () =>
      ask<{ url: string }>('POST', '/auth/sign-in/oidc', {
        callbackURL: location.pathname,
        errorCallbackURL: location.pathname,
      }),
    onSuccess: ({ url }) => location.assign(url),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    signIn.mutate()
  }
  const problem = signIn.error ?? oidc.error
  if (options.data && !options.data.owned) return <Unowned />
  return (
    <SignedOutPage
      title="Sign in"
      about="Sign in to the Errand console."
      below={
        options.data?.signUp ? (
          <>
            No account yet?{' '}
            <Link to="/sign-up" className="font-medium text-accent hover:underline">
              Create one
            </Link>
          </>
        ) : (
          'No account? Ask an owner for an invitation.'
        )
      }
    >
      <form onSubmit={submit} className="mt-6 grid gap-4">
        <Field label="Email">
          {(control) => (
            <Input
              {...control}
              type="email"
              autoComplete="username"
              required
              autoFocus
              value={email}
              onChange={(event) => setEmail(event.target.value)}
              className="!h-10"
            />
          )}
        </Field>
        <Field label="Password">
          {(control) => (
            <Input
              {...control}
              type="password"
              autoComplete="current-password"
              required
              value={password}
              onChange={(event) => setPassword(event.target.value)}
              className="!h-10"
            />
          )}
        </Field>
        {(problem || refused) && (
          <Notice tone="red">{problem ? Problem.from(problem).message : refusal(String(refused))}</Notice>
        )}
        <Button type="submit" look="primary" size="large" busy={signIn.isPending}>
          Sign in
        </Button>
        {options.data?.oidc && (
          <Button size="large" busy={oidc.isPending} onClick={() => oidc.mutate()}>
            Continue with {options.data.oidc.name}
          </Button>
        )}
      </form>
    </SignedOutPage>
  )
}

/** Explains the error code of the provider's redirect. */
function refusal(code: string): string {
  if (code === 'account_not_linked') {
    return 'A user with this email address already exists. Sign in with the password.'
  }
  return `The sign-in was refused: ${code.replaceAll('_', ' ')}.`
}

function Unowned() {
  return (
    <SignedOutPage title="This server has no owner yet" about="The server printed a one-time link at its first start.">
      <ol className="mt-6 grid gap-3">
        <li>
          In the server’s output, find the line that begins with <code className="text-small">console</code>.
        </li>
        <li>Open its link, and choose your email and password.</li>
      </ol>
    </SignedOutPage>
  )
}
