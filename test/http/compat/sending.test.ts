import { describe, expect, it } from 'vitest';
import { faultIn } from '../../../src/http/compat/sending.ts';

const mail = (to: string) => ({
  stream: null,
  body: { from: 'shop@kunde.example', to, subject: 'Order 7', html: '<p>Thank you</p>' },
});

describe('the mails of one request', () => {
  it('are validated in turns of their own: together their attachments are large', async () => {
    let turns = 0;
    const turn = async () => void turns++;
    expect(await faultIn([mail('ada@example.net'), mail('bob@example.net')], 0, turn)).toBeNull();
    expect(turns).toBe(2);
    const faulty = [mail('ada@example.net'), mail('nobody'), mail('bob@example.net')];
    expect(await faultIn(faulty, 0, turn)).toMatchObject({ code: 'VALIDATION_ERROR' });
    expect(turns).toBe(4);
  });
});
