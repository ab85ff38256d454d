import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { AttentionResponse } from '../http/console/attention-routes.ts';
import type { Data } from './data.ts';

const AttentionContext = createContext<Data<AttentionResponse>>({
  value: null,
  error: null,
  reload: () => {},
});
/** Its value is what needs a person now: the shell reads it once for the navigation and the overview. */
export const AttentionProvider = AttentionContext.Provider;

/** What needs a person. */
export function useAttention(): Data<AttentionResponse> {
  return useContext(AttentionContext);
}
