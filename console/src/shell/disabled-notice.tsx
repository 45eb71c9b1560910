/** The notice above every page of an account whose managed agents are disabled. */
import { Link } from '@tanstack/react-router'
import type { Session } from '../session/session.ts'
import { Notice } from '../ui/states.tsx'

export function DisabledNotice({ session }: { readonly session: Session }) {
  return (
    <div className="px-4 pt-4 sm:px-8">
      <Notice title="Managed agents are disabled for this account">
        {session.role === 'owner' ? (
          <>
            API calls fail with status 403. Enable managed agents under{' '}
            <Link to="/settings/account" className="font-medium underline">
              Settings, Account
            </Link>
            .
          </>
        ) : (
          'API calls fail with status 403 until an owner enables managed agents.'
        )}
      </Notice>
    </div>
  )
}
