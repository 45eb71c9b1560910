/** For who is signed in and belongs to no account: came in by a provider for the first time, or was removed. */
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
      about={`You are signed in as ${me.user.email}, and belong to no account yet. An owner can send you an invitation: open its link in this browser.`}
    >
      <div className="mt-6 flex gap-2">
        <Button look="primary" icon="retry" onClick={() => cache.invalidateQueries({ queryKey: meQuery.queryKey })}>
          Look again
        </Button>
        <Button busy={signOut.isPending} onClick={() => signOut.mutate()}>
          Sign out
        </Button>
      </div>
    </SignedOutPage>
  )
}
