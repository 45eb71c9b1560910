/** A person's word on tool calls that wait. */
import { useMutation } from '@tanstack/react-query'
import { approveInteraction } from '../api/sdk.gen.js'
import { Problem } from '../server/problem.ts'
import { toast } from '../ui/toast.tsx'

export function useDecide(id: string | undefined): (step: number, approve: boolean, reason?: string) => void {
  const decision = useMutation({
    mutationFn: (body: { readonly step: number; readonly approve: boolean; readonly reason?: string }) =>
      approveInteraction({ path: { id: id ?? '' }, body }),
    onError: (error) => toast(Problem.from(error).message, true),
  })
  return (step, approve, reason) => decision.mutate({ step, approve, reason })
}
