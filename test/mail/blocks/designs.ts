import type { Design } from '../../../src/mail/blocks/design.ts';

/** A design with a block of each type, and each kind of text. */
export const DESIGN: Design = {
  version: 1,
  language: 'en',
  preheader: 'What is new, {{firstName|there}}',
  theme: { accent: '#2f5fd0', background: '#f2f4f7', text: '#1f2933', width: 600, font: 'system' },
  blocks: [
    {
      id: 'title',
      type: 'heading',
      level: 1,
      content: [
        { type: 'text', text: 'Welcome, ' },
        { type: 'variable', attrs: { name: 'firstName', default: 'there' } },
      ],
    },
    {
      id: 'intro',
      type: 'text',
      content: {
        type: 'doc',
        content: [
          {
            type: 'paragraph',
            content: [
              { type: 'text', text: 'Tom & Jerry know that 1 < 2, "quoted" ' },
              { type: 'text', text: 'bold', marks: [{ type: 'bold' }, { type: 'italic' }] },
              { type: 'hardBreak' },
              {
                type: 'text',
                text: 'a link',
                marks: [{ type: 'link', attrs: { href: 'https://shop.example/?a=1&b={{plan|free}}' } }],
              },
              { type: 'text', text: ' in color', marks: [{ type: 'color', attrs: { color: '#b42318' } }] },
            ],
          },
          {
            type: 'bulletList',
            content: [
              {
                type: 'listItem',
                content: [
                  { type: 'paragraph', content: [{ type: 'text', text: 'First' }] },
                  {
                    type: 'orderedList',
                    attrs: { start: 3 },
                    content: [
                      {
                        type: 'listItem',
                        content: [{ type: 'paragraph', content: [{ type: 'text', text: 'Inside' }] }],
                      },
                    ],
                  },
                ],
              },
            ],
          },
        ],
      },
    },
    { id: 'action', type: 'button', text: 'Open your account', href: '{{accountUrl|https://shop.example/}}' },
    {
      id: 'photo',
      type: 'image',
      src: 'https://shop.example/photo.jpg',
      alt: 'A photo of "the shop"',
      width: 1072,
      height: 400,
      href: 'https://shop.example/',
    },
    {
      id: 'columns',
      type: 'columns',
      background: '#eaf1ff',
      columns: [
        {
          blocks: [
            { id: 'left', type: 'heading', level: 3, content: [{ type: 'text', text: 'Left' }] },
            { id: 'left-action', type: 'button', text: 'Read', href: 'https://shop.example/left' },
          ],
        },
        { blocks: [{ id: 'right', type: 'heading', level: 3, content: [{ type: 'text', text: 'Right' }] }] },
      ],
    },
    { id: 'line', type: 'divider' },
    { id: 'space', type: 'spacer', height: 24 },
    {
      id: 'social',
      type: 'social',
      links: [
        { network: 'instagram', href: 'https://instagram.com/shop' },
        { network: 'email', href: 'mailto:shop@shop.example', label: 'Write to us' },
      ],
    },
    {
      id: 'footer',
      type: 'footer',
      content: [{ type: 'text', text: 'You receive this because you have an account.' }],
      reportAbuse: true,
    },
  ],
};
