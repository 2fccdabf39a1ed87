//! Numbers of the T-Cal paper: of its figures, read off the vector graphics of its authors'
//! program, and of its tables.

/// Sample sizes of Figures 3 and 4.
pub const SIZES: [usize; 3] = [2000, 5000, 10_000];

/// Figure 2: means of the plug-in and the debiased estimator, under the null and under bumps.
pub const DEBIASING: [[f64; 2]; 2] = [[0.064_871, 0.062_994], [0.000_023, 0.001_436]];

/// Figures 3 and 4, by sample size: type II errors at m = 40, 50, … 190 of the debiased ℓ2, plug-in
/// ℓ2 and ℓ1 tests; at n = 10,000 also of the ℓ1 test of 15 cells and the logistic score test.
pub const COMPARED: [&[&[f64; 16]]; 3] = [
    &[
        &[
            0.4161, 0.7706, 0.8913, 0.9329, 0.9437, 0.9443, 0.94, 0.9422, 0.9393, 0.9405, 0.9423,
            0.9434, 0.9412, 0.9409, 0.9438, 0.9444,
        ],
        &[
            0.4759, 0.8122, 0.9133, 0.9489, 0.957, 0.9585, 0.9545, 0.953, 0.9527, 0.9565, 0.9534,
            0.9576, 0.9577, 0.9553, 0.9597, 0.9548,
        ],
        &[
            0.543, 0.836, 0.9155, 0.9455, 0.9506, 0.9507, 0.9503, 0.9509, 0.9532, 0.9526, 0.9528,
            0.9556, 0.9557, 0.9536, 0.9546, 0.9526,
        ],
    ],
    &[
        &[
            0.002, 0.0547, 0.2318, 0.5065, 0.6684, 0.8197, 0.8862, 0.9178, 0.9343, 0.9443, 0.9483,
            0.9452, 0.9476, 0.9468, 0.9469, 0.9419,
        ],
        &[
            0.0015, 0.0465, 0.2366, 0.4917, 0.6536, 0.806, 0.8728, 0.9139, 0.9287, 0.9382, 0.9402,
            0.9463, 0.9498, 0.9428, 0.9401, 0.9432,
        ],
        &[
            0.0075, 0.0923, 0.3227, 0.5783, 0.7151, 0.8413, 0.8917, 0.9173, 0.9359, 0.9405, 0.9454,
            0.9513, 0.9449, 0.9454, 0.9409, 0.9465,
        ],
    ],
    &[
        &[
            0.0, 0.0, 0.0006, 0.0149, 0.0768, 0.1933, 0.3624, 0.5621, 0.6498, 0.7578, 0.8203,
            0.8688, 0.894, 0.9091, 0.9282, 0.932,
        ],
        &[
            0.0, 0.0, 0.0024, 0.0192, 0.1071, 0.2394, 0.4166, 0.6089, 0.6852, 0.7887, 0.8534,
            0.8976, 0.9187, 0.9265, 0.9395, 0.9481,
        ],
        &[
            0.0, 0.0, 0.004, 0.0435, 0.1416, 0.3055, 0.4772, 0.6659, 0.7163, 0.8142, 0.8611,
            0.8928, 0.9191, 0.9268, 0.9357, 0.9465,
        ],
        &[
            0.8563, 0.9294, 0.9494, 0.944, 0.9442, 0.9504, 0.9471, 0.9487, 0.9492, 0.9482, 0.9519,
            0.9531, 0.9501, 0.9509, 0.9522, 0.9507,
        ],
        &[
            0.955, 0.9606, 0.9595, 0.9642, 0.9605, 0.9633, 0.9624, 0.9645, 0.9577, 0.9608, 0.9651,
            0.9597, 0.9619, 0.9634, 0.9586, 0.9633,
        ],
    ],
];

/// Figure 7, by smoothness: type II errors at m = 40, 50, … 240 of the plug-in test and of sample
/// splitting.
pub const SPLITTING: [[&[f64; 21]; 2]; 2] = [
    [
        &[
            0.0, 0.0, 0.0, 0.0, 0.0, 0.0002, 0.0045, 0.0202, 0.0682, 0.1396, 0.2238, 0.3461,
            0.4544, 0.5675, 0.655, 0.7191, 0.7834, 0.8232, 0.8551, 0.8808, 0.8986,
        ],
        &[
            0.5496, 0.7117, 0.8056, 0.8535, 0.8848, 0.9145, 0.9206, 0.9295, 0.9334, 0.9409, 0.9411,
            0.9446, 0.9508, 0.9527, 0.9523, 0.9577, 0.9567, 0.9584, 0.9625, 0.9599, 0.9634,
        ],
    ],
    [
        &[
            0.0, 0.0, 0.0054, 0.2075, 0.6444, 0.8629, 0.9248, 0.938, 0.9386, 0.9271, 0.9223,
            0.9174, 0.9169, 0.9222, 0.9269, 0.931, 0.94, 0.9428, 0.9401, 0.941, 0.9412,
        ],
        &[
            0.5272, 0.7627, 0.8799, 0.921, 0.9385, 0.9418, 0.9466, 0.9498, 0.9482, 0.946, 0.9444,
            0.9427, 0.9467, 0.9452, 0.943, 0.9492, 0.9509, 0.9488, 0.9446, 0.9498, 0.9498,
        ],
    ],
];

/// Tables 1 and 2 by the authors' program on the published files, which is not print: network and
/// method, ECE in per cent with the last of its 15 cells closed, with scores of exactly 1 in a cell
/// of their own (four digits), and the decision.
pub const NETWORKS: [(&str, f64, f64, bool); 36] = [
    ("cifar10_densenet121.none", 2.0175196149395727, 2.0175, true),
    (
        "cifar10_densenet121.platt",
        2.3214901454033723,
        2.3215,
        true,
    ),
    ("cifar10_densenet121.poly", 1.4838999407692124, 1.7089, true),
    ("cifar10_densenet121.isotonic", 1.009087507861, 1.1591, true),
    (
        "cifar10_densenet121.histogram",
        0.46837826843228053,
        0.9684,
        true,
    ),
    (
        "cifar10_densenet121.scalebin",
        1.9426569478419857,
        1.9427,
        true,
    ),
    ("cifar10_resnet50.none", 2.232600407291421, 2.2326, true),
    ("cifar10_resnet50.platt", 1.7808544271546105, 1.7809, true),
    ("cifar10_resnet50.poly", 1.2889774994498164, 1.289, true),
    (
        "cifar10_resnet50.isotonic",
        0.6211629938605954,
        0.6212,
        true,
    ),
    (
        "cifar10_resnet50.histogram",
        0.7325671922343143,
        1.0967,
        true,
    ),
    (
        "cifar10_resnet50.scalebin",
        1.2073204467176375,
        1.2073,
        true,
    ),
    ("cifar10_vgg19_bn.none", 2.127657023509317, 2.1277, true),
    ("cifar10_vgg19_bn.platt", 1.705697075610224, 1.7057, true),
    ("cifar10_vgg19_bn.poly", 0.8708631592723625, 0.8959, false),
    (
        "cifar10_vgg19_bn.isotonic",
        1.1286431298691206,
        1.1286,
        false,
    ),
    (
        "cifar10_vgg19_bn.histogram",
        1.1268277971046892,
        1.2874,
        true,
    ),
    (
        "cifar10_vgg19_bn.scalebin",
        1.6754907408507218,
        1.6755,
        true,
    ),
    (
        "cifar100_mobilenetv2_x1_4.none",
        11.873734320796634,
        11.8737,
        true,
    ),
    (
        "cifar100_mobilenetv2_x1_4.platt",
        1.401379847339081,
        1.4014,
        false,
    ),
    (
        "cifar100_mobilenetv2_x1_4.poly",
        1.693393420454917,
        1.6934,
        true,
    ),
    (
        "cifar100_mobilenetv2_x1_4.isotonic",
        1.761309562903271,
        1.7613,
        false,
    ),
    (
        "cifar100_mobilenetv2_x1_4.histogram",
        1.6543962518235868,
        1.6544,
        true,
    ),
    (
        "cifar100_mobilenetv2_x1_4.scalebin",
        1.871796871489157,
        1.8718,
        true,
    ),
    ("cifar100_resnet56.none", 15.20037027248073, 15.2004, true),
    ("cifar100_resnet56.platt", 1.8384978809422776, 1.8385, false),
    ("cifar100_resnet56.poly", 1.9053407900096913, 1.9053, true),
    (
        "cifar100_resnet56.isotonic",
        2.3251776816869105,
        2.3252,
        true,
    ),
    (
        "cifar100_resnet56.histogram",
        2.3468318651105347,
        2.3468,
        true,
    ),
    (
        "cifar100_resnet56.scalebin",
        1.4456013320963332,
        1.4456,
        true,
    ),
    (
        "cifar100_shufflenetv2_x2_0.none",
        9.076073744291303,
        9.0761,
        true,
    ),
    (
        "cifar100_shufflenetv2_x2_0.platt",
        1.3678958751545456,
        1.3679,
        false,
    ),
    (
        "cifar100_shufflenetv2_x2_0.poly",
        1.8084101066739215,
        1.8084,
        false,
    ),
    (
        "cifar100_shufflenetv2_x2_0.isotonic",
        1.3781289651591822,
        1.3781,
        false,
    ),
    (
        "cifar100_shufflenetv2_x2_0.histogram",
        2.881632252272464,
        2.8816,
        true,
    ),
    (
        "cifar100_shufflenetv2_x2_0.scalebin",
        1.6674739012726283,
        1.6675,
        false,
    ),
];

/// ECEs in per cent that are transcribed from the print of Tables 1 and 2. Only those are known
/// that differ from the closed cell of [`NETWORKS`] by more than rounding.
pub const PRINTED: [(&str, f64); 9] = [
    ("cifar10_densenet121.poly", 1.71),
    ("cifar10_densenet121.isotonic", 1.16),
    ("cifar10_densenet121.histogram", 0.97),
    ("cifar10_resnet50.histogram", 1.12),
    ("cifar10_vgg19_bn.poly", 0.90),
    ("cifar10_vgg19_bn.histogram", 1.28),
    ("cifar100_resnet56.histogram", 2.44),
    ("cifar100_resnet56.scalebin", 1.57),
    ("cifar100_shufflenetv2_x2_0.histogram", 2.77),
];

/// Table 3 by the authors' program (its commit b6fe462, seed 2022) on the ImageNet outputs of its
/// repository: network and method, ECE in per cent with scores of exactly 1 in a cell of their own
/// (four digits), and the decision where we ran the program to its end. No print of this table is
/// at hand.
pub const IMAGENET: [(&str, f64, Option<bool>); 18] = [
    ("imagenet_densenet161.none", 5.6725, Some(true)),
    ("imagenet_densenet161.platt", 1.5791, Some(true)),
    ("imagenet_densenet161.poly", 0.6162, None),
    ("imagenet_densenet161.isotonic", 0.6275, None),
    ("imagenet_densenet161.histogram", 0.4592, Some(true)),
    ("imagenet_densenet161.scalebin", 1.552, Some(true)),
    ("imagenet_resnet152.none", 4.9897, None),
    ("imagenet_resnet152.platt", 1.411, None),
    ("imagenet_resnet152.poly", 0.6358, None),
    ("imagenet_resnet152.isotonic", 0.7968, None),
    ("imagenet_resnet152.histogram", 1.2636, Some(true)),
    ("imagenet_resnet152.scalebin", 1.403, Some(true)),
    ("imagenet_efficientnet_b7.none", 2.8164, Some(true)),
    ("imagenet_efficientnet_b7.platt", 1.8991, None),
    ("imagenet_efficientnet_b7.poly", 0.7132, None),
    ("imagenet_efficientnet_b7.isotonic", 1.0599, None),
    ("imagenet_efficientnet_b7.histogram", 0.881, Some(true)),
    ("imagenet_efficientnet_b7.scalebin", 1.968, Some(true)),
];

/// The debiased ℓ2 errors that Table 6 prints, squared and in per cent: three networks on ImageNet,
/// histogram binning and scaling-binning. Those of Tables 4 and 5 are not at hand.
pub const DISTINCT: [(&str, f64); 6] = [
    ("imagenet_densenet161.histogram", 0.01),
    ("imagenet_densenet161.scalebin", 0.05),
    ("imagenet_resnet152.histogram", 0.03),
    ("imagenet_resnet152.scalebin", 0.03),
    ("imagenet_efficientnet_b7.histogram", 0.02),
    ("imagenet_efficientnet_b7.scalebin", 0.06),
];
