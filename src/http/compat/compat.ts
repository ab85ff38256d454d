import type { Authenticator } from '../../accounts/authenticate.ts';
import type { Config } from '../../config/schema.ts';
import type { QueuedMail } from '../../sending/queued-mail.ts';
import type { Context } from '../../store/context.ts';
import type { RawMail } from '../api/sending/send-raw.ts';
import { withTestKeyCheck } from '../test-keys.ts';
import { mailgun } from './mailgun.ts';
import { postmark } from './postmark.ts';
import type { CompatProvider } from './provider.ts';
import { resend } from './resend.ts';
import { sendgrid } from './sendgrid.ts';
import type { CompatContext, CompatServices } from './sending.ts';
import { ses } from './ses.ts';

const PROVIDERS = { postmark, resend, sendgrid, mailgun, ses };

/** The providers that `compat.enable` names. */
export function compatProviders(
  context: CompatContext & Pick<Context, 'reader' | 'seal'> & { config: Pick<Config, 'compat'> },
  services: CompatServices & { authenticator: Authenticator; queuedMail: QueuedMail; rawMail: RawMail },
): CompatProvider[] {
  return context.config.compat.enable.map((name) => {
    const provider = PROVIDERS[name](context, services);
    return {
      ...provider,
      path: `/compat/${name}/`,
      routes: provider.routes.map((route) => withTestKeyCheck(route, context.tables)),
    };
  });
}
