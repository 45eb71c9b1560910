/** The button that cancels a running interaction. */
import { useMutation } from '@tanstack/react-query'
import { cancelInteraction } from '../api/sdk.gen.js'
import { Problem } from '../server/problem.ts'
import { Button } from '../ui/button.tsx'
import { toast } from '../ui/toast.tsx'

export function StopButton({ id }: { readonly id: string }) {
  const cancel = useMutation({
    mutationFn: () => cancelInteraction({ path: { id } }),
    onError: (error) => toast(Problem.from(error).message, true),
  })
  return (
    <Button icon="stop" busy={cancel.isPending} onClick={() => cancel.mutate()}>
      Cancel
    </Button>
  )
}
