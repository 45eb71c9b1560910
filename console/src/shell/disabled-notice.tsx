/** Above every page of an account whose managed agents are off: why nothing runs, and what to do. */
import { Link } from '@tanstack/react-router'
import type { Session } from '../session/session.ts'
import { Notice } from '../ui/states.tsx'

export function DisabledNotice({ session }: { readonly session: Session }) {
  return (
    <div className="px-4 pt-4 sm:px-8">
      <Notice title="Managed agents are switched off for this account">
        {session.role === 'owner' ? (
          <>
            Its keys are answered with 403 until you switch them on, under{' '}
            <Link to="/settings/account" className="font-medium underline">
              Settings, Account
            </Link>
            .
          </>
        ) : (
          'Its keys are answered with 403 until an owner switches them on.'
        )}
      </Notice>
    </div>
  )
}
