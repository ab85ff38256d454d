import { defaultComplianceTemplates } from '../../src/mail/compliance.ts';

/** The default compliance templates in English. */
export const ENGLISH_FOOTER = defaultComplianceTemplates(
  {
    sent: 'This message was sent to {recipient} by {sender}.',
    unsubscribe: 'Unsubscribe',
    unasked: 'You did not ask for this message?',
    report: 'Report abuse',
  },
  'en',
);
