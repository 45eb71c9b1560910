/** The page of a one-time link, which creates the owner, accepts an invitation or resets a password. The token is in the URL's fragment. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { ask, type Link, type Me } from '../server/console-api.ts'
import { Button, ButtonLink } from '../ui/button.tsx'
import { Loading, Notice } from '../ui/states.tsx'
import { type Person, PersonForm } from './person-form.tsx'
import { meQuery } from './session.ts'
import { SignedOutPage } from './signed-out-page.tsx'

const TEXTS = {
  welcome: {
    title: 'Welcome to Errand',
    action: 'Create owner',
    about: 'This link creates the owner of the server’s account.',
  },
  invite: { title: 'Accept invitation', action: 'Join', about: '' },
  reset: { title: 'Reset password', action: 'Set password', about: 'Signs out all other sessions.' },
} as const

export default function LinkPage() {
  const navigate = useNavigate()
  const cache = useQueryClient()
  const [token] = useState(() => location.hash.slice(1))
  const link = useQuery({
    queryKey: ['link', token],
    queryFn: () => ask<Link>('POST', '/api/links/inspect', { token }),
    enabled: token !== '',
    retry: false,
    // The link works once, so it is not fetched again.
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnReconnect: false,
  })
  const me = useQuery(meQuery)
  const accept = useMutation({
    mutationFn: (person: Partial<Person>) => ask<Me>('POST', '/api/links/accept', { token, ...person }),
    onSuccess: (joined) => {
      cache.setQueryData(meQuery.queryKey, joined)
      navigate({ to: '/', replace: true })
    },
  })
  if (link.error || token === '') {
    return (
      <SignedOutPage title="This link is not valid" about="It was already used, has expired, or is incomplete.">
        <p className="mt-4 text-soft">
          Ask the sender for a new link. If the server has no owner yet, restart it to print a new one.
        </p>
        <ButtonLink to="/" className="mt-6">
          Sign in
        </ButtonLink>
      </SignedOutPage>
    )
  }
  if (!link.data) {
    return (
      <SignedOutPage title="Loading">
        <div className="mt-6">
          <Loading rows={4} />
        </div>
      </SignedOutPage>
    )
  }
  const { kind, account, role, email } = link.data
  const texts = TEXTS[kind]
  const about = kind === 'invite' ? `Join ${account?.name ?? 'an account'} as ${role}.` : texts.about
  return (
    <SignedOutPage title={texts.title} about={about}>
      {kind === 'invite' && me.data ? (
        <div className="mt-6 grid gap-4">
          <Notice tone="blue">You are signed in as {me.data.user.email}.</Notice>
          <Button look="primary" size="large" busy={accept.isPending} onClick={() => accept.mutate({})}>
            Join as {me.data.user.name}
          </Button>
        </div>
      ) : (
        <PersonForm
          action={texts.action}
          busy={accept.isPending}
          error={accept.error}
          passwordOnly={kind === 'reset'}
          email={email ?? ''}
          onSubmit={(person) => accept.mutate(kind === 'reset' ? { password: person.password } : person)}
        />
      )}
    </SignedOutPage>
  )
}
