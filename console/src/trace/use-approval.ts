/** Approving and denying tool calls. */
import { useMutation } from '@tanstack/react-query'
import { approveInteraction } from '../api/sdk.gen.js'
import { Problem } from '../server/problem.ts'
import { useMayChange } from '../session/session.ts'
import { toast } from '../ui/toast.tsx'

type Decide = (step: number, approve: boolean, reason?: string) => void

/** Undefined if the user's role does not allow it. */
export function useApproval(id: string | undefined): Decide | undefined {
  const mayChange = useMayChange()
  const decision = useMutation({
    mutationFn: (body: { readonly step: number; readonly approve: boolean; readonly reason?: string }) =>
      approveInteraction({ path: { id: id ?? '' }, body }),
    onError: (error) => toast(Problem.from(error).message, true),
  })
  return mayChange ? (step, approve, reason) => decision.mutate({ step, approve, reason }) : undefined
}
