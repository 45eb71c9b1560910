/** A link that works once: it makes the owner, lets somebody join, or sets a new password. Its token is in the fragment. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { ask, type Link, type Me } from '../server/console-api.ts'
import { Button, ButtonLink } from '../ui/button.tsx'
import { Loading, Notice } from '../ui/states.tsx'
import { type Person, PersonForm } from './person-form.tsx'
import { meQuery } from './session.ts'
import { SignedOutPage } from './signed-out-page.tsx'

const WORDS = {
  welcome: {
    title: 'Welcome to Errand',
    action: 'Create the owner',
    about: 'You are the first one here. Whoever uses this link owns the server’s account.',
  },
  invite: { title: 'You are invited', action: 'Join', about: '' },
  reset: { title: 'Set a new password', action: 'Set password', about: 'All other sessions end with it.' },
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
    // It works once: what it says is not asked again.
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
      <SignedOutPage title="This link does not work" about="It was used already, has expired, or is not whole.">
        <p className="mt-4 text-soft">
          Links work once. Ask whoever sent it for another; on the server’s machine, a restart without an owner prints a
          new one.
        </p>
        <ButtonLink to="/" className="mt-6">
          To the sign-in
        </ButtonLink>
      </SignedOutPage>
    )
  }
  if (!link.data) {
    return (
      <SignedOutPage title="One moment">
        <div className="mt-6">
          <Loading rows={4} />
        </div>
      </SignedOutPage>
    )
  }
  const { kind, account, role, email } = link.data
  const words = WORDS[kind]
  const about = kind === 'invite' ? `To ${account?.name ?? 'an account'}, as ${role}.` : words.about
  return (
    <SignedOutPage title={words.title} about={about}>
      {kind === 'invite' && me.data ? (
        <div className="mt-6 grid gap-4">
          <Notice tone="blue">You are signed in as {me.data.user.email}.</Notice>
          <Button look="primary" size="large" busy={accept.isPending} onClick={() => accept.mutate({})}>
            Join as {me.data.user.name}
          </Button>
        </div>
      ) : (
        <PersonForm
          action={words.action}
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
