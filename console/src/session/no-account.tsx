/** The page for a signed-in user without an account: a first sign-in by OpenID Connect, or a removed member. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { ask, type Me } from '../server/console-api.ts'
import { Button } from '../ui/button.tsx'
import { meQuery } from './session.ts'
import { SignedOutPage } from './signed-out-page.tsx'

export default function NoAccount({ me }: { readonly me: Me }) {
  const cache = useQueryClient()
  const signOut = useMutation({
    mutationFn: () => ask('POST', '/auth/sign-out'),
    onSuccess: () => cache.resetQueries({ queryKey: meQuery.queryKey }),
  })
  return (
    <SignedOutPage
      title={`Hello, ${me.user.name}`}
      about={`You are signed in as ${me.user.email}, but you are not a member of an account. Ask an owner for an invitation, and open its link in this browser.`}
    >
      <div className="mt-6 flex gap-2">
        <Button look="primary" icon="retry" onClick={() => cache.invalidateQueries({ queryKey: meQuery.queryKey })}>
          Check again
        </Button>
        <Button busy={signOut.isPending} onClick={() => signOut.mutate()}>
          Sign out
        </Button>
      </div>
    </SignedOutPage>
  )
}
