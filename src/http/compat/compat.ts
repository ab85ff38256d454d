import type { Authenticator } from '../../accounts/authenticate.ts';
import type { Config } from '../../config/schema.ts';
import type { QueuedMail } from '../../sending/queued-mail.ts';
import type { Context } from '../../store/context.ts';
import { withTestKeyCheck } from '../test-keys.ts';
import { mailgun } from './mailgun.ts';
import { postmark } from './postmark.ts';
import type { CompatProvider } from './provider.ts';
import { resend } from './resend.ts';
import { sendgrid } from './sendgrid.ts';
import type { CompatContext, CompatServices } from './sending.ts';

const PROVIDERS = { postmark, resend, sendgrid, mailgun };

/** The providers that `compat.enable` names. */
export function compatProviders(
  context: CompatContext & Pick<Context, 'reader'> & { config: Pick<Config, 'compat'> },
  services: CompatServices & { authenticator: Authenticator; queuedMail: QueuedMail },
): CompatProvider[] {
  return context.config.compat.enable.map((name) => {
    const provider = PROVIDERS[name](context, services);
    return { ...provider, routes: provider.routes.map((route) => withTestKeyCheck(route, context.tables)) };
  });
}
