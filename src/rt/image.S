// The images of the runtime and of the sampler, as bytes of the weir process.
        .section .rodata
        .globl weir_runtime_image, weir_runtime_image_end, weir_sampler_image, weir_sampler_image_end
weir_runtime_image:
        .incbin "rt.bin"
weir_runtime_image_end:
weir_sampler_image:
        .incbin "sampler.bin"
weir_sampler_image_end:
        .section .note.GNU-stack, "", @progbits
