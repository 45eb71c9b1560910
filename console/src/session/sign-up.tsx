/** The sign-up page, available if the operator allows it. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { ask, type Me } from '../server/console-api.ts'
import { type Person, PersonForm } from './person-form.tsx'
import { meQuery } from './session.ts'
import { SignedOutPage } from './signed-out-page.tsx'

export default function SignUp() {
  const navigate = useNavigate()
  const cache = useQueryClient()
  const signUp = useMutation({
    mutationFn: (person: Person) => ask<Me>('POST', '/api/sign-up', person),
    onSuccess: (me) => {
      cache.setQueryData(meQuery.queryKey, me)
      navigate({ to: '/', replace: true })
    },
  })
  return (
    <SignedOutPage
      title="Create an account"
      about="The account starts with one project."
      below={
        <>
          Already have an account?{' '}
          <Link to="/" className="font-medium text-accent hover:underline">
            Sign in
          </Link>
        </>
      }
    >
      <PersonForm
        action="Create account"
        busy={signUp.isPending}
        error={signUp.error}
        onSubmit={(person) => signUp.mutate(person)}
      />
    </SignedOutPage>
  )
}
