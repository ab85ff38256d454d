import { isRefusal } from '../../core/refusal.ts';
import { createInFlight } from '../in-flight.ts';
import { plainLook } from './look.ts';
import { faultPage } from './plain-pages.ts';
import type { PublicRequest, PublicResponse } from './response.ts';

/**
 * Returns a function that creates a response that may have megabytes. A few of an account are open at a time, as each is in
 * memory until the client has read it; others wait. Null: the client has disconnected before its turn.
 */
export function createLargeResponses() {
  const inFlight = createInFlight();
  return async (
    accountId: string,
    { acceptLanguage, isClosed }: Pick<PublicRequest, 'acceptLanguage' | 'isClosed'>,
    respond: () => Promise<PublicResponse>,
  ): Promise<PublicResponse | null> => {
    const large = await inFlight.enterLargeResponse(accountId);
    if (isRefusal(large)) return faultPage(plainLook(acceptLanguage));
    if (isClosed()) {
      large.release();
      return null;
    }
    try {
      const response = await respond();
      const onClosed = () => {
        response.onClosed?.();
        large.release();
      };
      return { ...response, onClosed };
    } catch (error) {
      large.release();
      throw error;
    }
  };
}
